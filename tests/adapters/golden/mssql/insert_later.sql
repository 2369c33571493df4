-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql "INSERT"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/data-types/datetime2-transact-sql "datetime2" (ISO 8601 text with up to 7 digits, whatever the language of the session)
-- Moments go as text: pymssql cuts a datetime to milliseconds.
SELECT sysutcdatetime() AS sysutcdatetime_1;

INSERT INTO task (id, name, queue, priority, status, scheduled_at, body, headers, max_attempts)
VALUES (%(id)s, %(name)s, %(queue)s, %(priority)s, %(status)s, CAST(%(scheduled_at)s AS DATETIME2(6)), %(body)s, %(headers)s,
    %(max_attempts)s)
