-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
-- https://learn.microsoft.com/sql/t-sql/statements/delete-transact-sql "DELETE"
-- https://learn.microsoft.com/sql/t-sql/language-elements/save-transaction-transact-sql "SAVE TRANSACTION"
-- https://learn.microsoft.com/sql/t-sql/language-elements/rollback-transaction-transact-sql "ROLLBACK TRANSACTION"
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
