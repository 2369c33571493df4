-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE" (WITH <common_table_expression>)
-- https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql "OUTPUT clause"
-- https://learn.microsoft.com/sql/t-sql/queries/with-common-table-expression-transact-sql "WITH common_table_expression" (ORDER BY beside TOP only)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME"
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
