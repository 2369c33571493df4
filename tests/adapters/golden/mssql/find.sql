-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
SELECT TOP 1000 task.id
FROM task
WHERE task.queue = %(queue_1)s AND task.status IN (%(status_1_1)s) AND task.id > %(id_1)s
ORDER BY task.id
