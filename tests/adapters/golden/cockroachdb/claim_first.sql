-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/select-clause "Simple SELECT Clause" (a plain read: SERIALIZABLE tells at the COMMIT)
SELECT task.id AS id
FROM task
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %(param_1)s
