-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/relational-databases/indexes/create-filtered-indexes "Create filtered indexes" (the condition of the query is that of the filter, as a literal; INDEX hint)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE" (WITH common_table_expression: one reference to the table)
-- https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql "OUTPUT clause" (without INTO, so the table must have no triggers: error 334)
-- https://learn.microsoft.com/sql/t-sql/queries/with-common-table-expression-transact-sql "WITH common_table_expression" (ORDER BY only beside TOP)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql "DATEADD" (the number is an int, so seconds and microseconds apart)
-- One reference to the table, by an updatable CTE: a second one could wait for rows it does not take.
WITH picked AS (SELECT TOP 20 task.id AS id, task.name AS name, task.queue AS queue, task.priority AS priority,
    task.status AS status, task.scheduled_at AS scheduled_at, task.ready_at AS ready_at, task.body AS body,
    task.headers AS headers, task.attempt AS attempt, task.max_attempts AS max_attempts, task.crashes AS crashes,
    task.epoch AS epoch, task.reserved_until AS reserved_until, task.reserved_by AS reserved_by,
    task.unique_key AS unique_key, task.unique_hash AS unique_hash, task.unique_until AS unique_until,
    task.error AS error, task.errors AS errors, task.result AS result, task.created_at AS created_at,
    task.finished_at AS finished_at
FROM task WITH (INDEX(ix_task_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id)
UPDATE picked
SET status='RUNNING', attempt=(picked.attempt + 1), epoch=(picked.epoch + 1), reserved_until=dateadd(MICROSECOND,
    CAST((CAST(%(lease)s AS FLOAT(53)) - floor(CAST(%(lease)s AS FLOAT(53)))) * 1e6 AS INTEGER), dateadd(SECOND,
    CAST(floor(CAST(%(lease)s AS FLOAT(53))) AS INTEGER), sysutcdatetime())), reserved_by=%(holder)s,
    unique_hash=CASE WHEN (picked.unique_until = 'start') THEN NULL ELSE picked.unique_hash END
OUTPUT inserted.id AS id, inserted.name, inserted.queue, inserted.priority, inserted.body, inserted.headers,
    inserted.attempt, inserted.max_attempts, inserted.crashes, inserted.epoch, inserted.errors, inserted.error,
    inserted.scheduled_at AS scheduled_at, inserted.created_at AS created_at, inserted.ready_at AS ready_at
