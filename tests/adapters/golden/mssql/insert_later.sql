-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql "INSERT"
SELECT sysutcdatetime() AS sysutcdatetime_1;

INSERT INTO task (id, name, queue, priority, status, scheduled_at, body, headers, max_attempts)
VALUES (%(id)s, %(name)s, %(queue)s, %(priority)s, %(status)s, CAST(%(scheduled_at)s AS DATETIME2(6)), %(body)s, %(headers)s,
    %(max_attempts)s)
