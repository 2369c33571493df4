-- https://www.cockroachlabs.com/docs/stable/selection-queries "Selection Queries"
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL"
-- The conditions again after the pick: the row may have changed in between. No SKIP LOCKED.
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=(clock_timestamp() + %(lease)s * INTERVAL '1 second'), reserved_by=%(holder)s,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id IN (SELECT task.id
FROM task
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %(at_most)s) AND task.queue = %(of_queue)s AND task.status = 'NEW'
RETURNING task.id AS id, task.name, task.queue, task.priority, CAST(task.body AS TEXT) AS body,
    CAST(task.headers AS TEXT) AS headers, task.attempt, task.max_attempts, task.crashes, task.epoch,
    CAST(task.errors AS TEXT) AS errors, CAST(task.error AS TEXT) AS error, task.scheduled_at AS scheduled_at,
    task.created_at AS created_at, task.ready_at AS ready_at
