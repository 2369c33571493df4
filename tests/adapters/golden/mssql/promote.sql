-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/relational-databases/indexes/create-filtered-indexes "Create filtered indexes" (the condition of the query is that of the filter, as a literal; INDEX hint)
-- https://learn.microsoft.com/sql/t-sql/functions/datediff-big-transact-sql "DATEDIFF_BIG" (MICROSECOND would overflow an int within 36 minutes)
-- https://learn.microsoft.com/sql/t-sql/queries/select-order-by-clause-transact-sql "SELECT - ORDER BY clause" (OFFSET ... FETCH)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE" (WITH common_table_expression: one reference to the table)
-- https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql "OUTPUT clause" (without INTO, so the table must have no triggers: error 334)
-- https://learn.microsoft.com/sql/t-sql/queries/with-common-table-expression-transact-sql "WITH common_table_expression" (ORDER BY only beside TOP)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
SELECT task.priority, datediff_big(MICROSECOND, sysutcdatetime(), task.scheduled_at) * 1e-6 AS seconds
FROM task WITH (INDEX(ix_task_promote))
WHERE task.status = 'SCHEDULED' AND task.priority > %(after)s
ORDER BY task.priority, task.scheduled_at
OFFSET 0 ROWS
FETCH FIRST 1 ROWS ONLY;

WITH picked AS (SELECT TOP 100 task.id AS id, task.name AS name, task.queue AS queue, task.priority AS priority,
    task.status AS status, task.scheduled_at AS scheduled_at, task.ready_at AS ready_at, task.body AS body,
    task.headers AS headers, task.attempt AS attempt, task.max_attempts AS max_attempts, task.crashes AS crashes,
    task.epoch AS epoch, task.reserved_until AS reserved_until, task.reserved_by AS reserved_by,
    task.unique_key AS unique_key, task.unique_hash AS unique_hash, task.unique_until AS unique_until,
    task.error AS error, task.errors AS errors, task.result AS result, task.created_at AS created_at,
    task.finished_at AS finished_at
FROM task WITH (INDEX(ix_task_promote), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.status = 'SCHEDULED' AND task.priority = %(of_priority)s AND task.scheduled_at <= sysutcdatetime()
ORDER BY task.scheduled_at, task.id)
UPDATE picked
SET status='NEW', ready_at=sysutcdatetime()
OUTPUT inserted.id AS id
