-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
-- https://learn.microsoft.com/sql/t-sql/statements/delete-transact-sql "DELETE"
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql "DATEADD" (the number is an int, so seconds and microseconds apart)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/data-types/datetime2-transact-sql "datetime2" (ISO 8601 text with up to 7 digits, whatever the language of the session)
-- https://learn.microsoft.com/sql/t-sql/language-elements/save-transaction-transact-sql "SAVE TRANSACTION" (only within a transaction)
-- https://learn.microsoft.com/sql/t-sql/language-elements/rollback-transaction-transact-sql "ROLLBACK TRANSACTION" (savepoint_name; there is no release)
-- No INDEX hint: that the filter's IN covers the one status is for the server to see.
SELECT TOP 1 task.finished_at, task.id
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.status = 'COMPLETED' AND task.finished_at < dateadd(MICROSECOND,
    CAST((CAST(-%(param_2)s AS FLOAT(53)) - floor(CAST(-%(param_2)s AS FLOAT(53)))) * 1e6 AS INTEGER),
    dateadd(SECOND, CAST(floor(CAST(-%(param_2)s AS FLOAT(53))) AS INTEGER), sysutcdatetime()))
ORDER BY task.finished_at, task.id;

IF @@TRANCOUNT = 0 BEGIN TRANSACTION;

SAVE TRANSACTION sa_savepoint_1;

DELETE
FROM task
WHERE task.status = 'COMPLETED' AND task.id IN (%(id_1_1)s);

ROLLBACK TRANSACTION sa_savepoint_1;

SELECT TOP 1 task.finished_at, task.id
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.status = 'COMPLETED' AND task.finished_at < dateadd(MICROSECOND,
    CAST((CAST(-%(param_2)s AS FLOAT(53)) - floor(CAST(-%(param_2)s AS FLOAT(53)))) * 1e6 AS INTEGER),
    dateadd(SECOND, CAST(floor(CAST(-%(param_2)s AS FLOAT(53))) AS INTEGER), sysutcdatetime()))
    AND task.finished_at >= CAST(%(finished_at_1)s AS DATETIME2(6)) AND (task.finished_at > CAST(%(finished_at_2)s AS DATETIME2(6)) OR task.id > %(id_1)s)
ORDER BY task.finished_at, task.id;

SAVE TRANSACTION sa_savepoint_2
