-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
SELECT TOP 50 task.id, task.queue, task.name, task.status, task.priority, task.attempt, task.max_attempts,
    task.crashes, task.epoch, task.scheduled_at AS scheduled_at, task.created_at AS created_at,
    task.finished_at AS finished_at, task.reserved_until AS reserved_until, task.reserved_by, task.unique_key,
    task.body, task.headers, task.error, task.result
FROM task
WHERE task.status IN (%(status_1_1)s)
ORDER BY task.id DESC
