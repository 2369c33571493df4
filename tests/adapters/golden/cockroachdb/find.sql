-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
SELECT task.id
FROM task
WHERE task.queue = %(queue_1)s AND task.status IN (%(status_1_1)s) AND task.id > %(id_1)s::UUID
ORDER BY task.id
LIMIT %(param_1)s
