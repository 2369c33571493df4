-- https://www.postgresql.org/docs/11/queries-with.html "WITH Queries (Common Table Expressions)"
-- Before version 12 every CTE is materialized, and the word is a syntax error.
WITH picked AS (
    SELECT task.id AS id
    FROM task
    WHERE task.queue = %(of_queue)s::VARCHAR AND task.status = 'NEW'
    ORDER BY task.priority, task.ready_at, task.id
    LIMIT %(at_most)s::INTEGER
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=(clock_timestamp() + %(lease)s * INTERVAL '1 second'), reserved_by=%(holder)s::VARCHAR,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
FROM picked
WHERE task.id = picked.id
RETURNING task.id AS id, task.name, task.queue, task.priority, CAST(task.body AS TEXT) AS body,
    CAST(task.headers AS TEXT) AS headers, task.attempt, task.max_attempts, task.crashes, task.epoch,
    CAST(task.errors AS TEXT) AS errors, CAST(task.error AS TEXT) AS error,
    task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.ready_at AS ready_at
