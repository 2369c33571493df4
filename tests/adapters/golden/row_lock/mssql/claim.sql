-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table (UPDLOCK: held until the transaction completes; ROWLOCK, READPAST, READCOMMITTEDLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql (with ORDER BY: the first rows of that order)
SELECT TOP 20 task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error, task.scheduled_at AS scheduled_at,
    task.created_at AS created_at, task.ready_at AS ready_at
FROM task WITH (INDEX(ix_task_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
