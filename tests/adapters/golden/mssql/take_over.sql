-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/relational-databases/indexes/create-filtered-indexes "Create filtered indexes" (the condition of the query is that of the filter, as a literal; INDEX hint)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE" (WITH common_table_expression: one reference to the table)
-- https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql "OUTPUT clause" (without INTO, so the table must have no triggers: error 334)
-- https://learn.microsoft.com/sql/t-sql/queries/with-common-table-expression-transact-sql "WITH common_table_expression" (ORDER BY only beside TOP)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
WITH picked AS (SELECT TOP 100 task.id AS id, task.name AS name, task.queue AS queue, task.priority AS priority,
    task.status AS status, task.scheduled_at AS scheduled_at, task.ready_at AS ready_at, task.body AS body,
    task.headers AS headers, task.attempt AS attempt, task.max_attempts AS max_attempts, task.crashes AS crashes,
    task.epoch AS epoch, task.reserved_until AS reserved_until, task.reserved_by AS reserved_by,
    task.unique_key AS unique_key, task.unique_hash AS unique_hash, task.unique_until AS unique_until,
    task.error AS error, task.errors AS errors, task.result AS result, task.created_at AS created_at,
    task.finished_at AS finished_at
FROM task WITH (INDEX(ix_task_take_over), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.status = 'RUNNING' AND task.reserved_until < sysutcdatetime()
ORDER BY task.reserved_until, task.id)
UPDATE picked
SET status=CASE WHEN (picked.crashes + 1 >= %(max_crashes)s OR picked.attempt >= picked.max_attempts) THEN 'FAILED'
    ELSE 'NEW' END, ready_at=CASE WHEN (picked.crashes + 1 >= %(max_crashes)s OR picked.attempt >=
    picked.max_attempts) THEN picked.ready_at ELSE sysutcdatetime() END,
    finished_at=CASE WHEN (picked.crashes + 1 >= %(max_crashes)s OR picked.attempt >= picked.max_attempts) THEN
    sysutcdatetime() ELSE NULL END,
    error=CASE WHEN (picked.crashes + 1 >= %(max_crashes)s OR picked.attempt >= picked.max_attempts) THEN
    %(param_1)s ELSE picked.error END,
    unique_hash=CASE WHEN (picked.crashes + 1 >= %(max_crashes)s OR picked.attempt >= picked.max_attempts) THEN NULL
    ELSE picked.unique_hash END, crashes=(picked.crashes + 1), epoch=(picked.epoch + 1), reserved_until=NULL,
    reserved_by=NULL
OUTPUT inserted.id AS id, inserted.status
