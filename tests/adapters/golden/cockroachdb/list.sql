-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
SELECT task.id, task.queue, task.name, task.status, task.priority, task.attempt, task.max_attempts, task.crashes,
    task.epoch, task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.finished_at AS finished_at,
    task.reserved_until AS reserved_until, task.reserved_by, task.unique_key, CAST(task.body AS TEXT) AS body,
    CAST(task.headers AS TEXT) AS headers, CAST(task.error AS TEXT) AS error, CAST(task.result AS TEXT) AS result
FROM task
WHERE task.status IN (%(status_1_1)s)
ORDER BY task.id DESC
LIMIT %(param_1)s
