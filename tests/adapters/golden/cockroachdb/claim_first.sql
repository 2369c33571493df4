-- https://www.cockroachlabs.com/docs/stable/selection-queries "Selection Queries"
SELECT task.id AS id
FROM task
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %(param_1)s
