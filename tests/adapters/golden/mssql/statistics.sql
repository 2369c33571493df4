-- https://learn.microsoft.com/sql/t-sql/queries/select-group-by-transact-sql "SELECT - GROUP BY"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
SELECT task.queue, task.status, count(*) AS count_1, min(task.ready_at) AS min_1, min(task.reserved_until) AS min_2
FROM task
GROUP BY task.queue, task.status
ORDER BY task.queue;

SELECT sysutcdatetime() AS sysutcdatetime_1
