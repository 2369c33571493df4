-- https://www.postgresql.org/docs/current/queries-table-expressions.html#QUERIES-LATERAL "LATERAL Subqueries"; https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE "The Locking Clause"
-- A LATERAL range for each position, each with its own LIMIT and lock; the outer LIMIT stops pulling from them.
WITH picked AS MATERIALIZED (
    SELECT found.id AS id
    FROM unnest(
        CAST(%(low_priority)s::SMALLINT[] AS SMALLINT[]),
        CAST(%(low_ready_at)s::TIMESTAMP WITH TIME ZONE[] AS TIMESTAMP WITH TIME ZONE[]),
        CAST(%(low_id)s::UUID[] AS UUID[]),
        CAST(%(end_priority)s::SMALLINT[] AS SMALLINT[])
    ) AS ranges(low_priority, low_ready_at, low_id, end_priority)
    JOIN LATERAL (
        SELECT task.id AS id
        FROM task
        WHERE task.queue = %(of_queue)s::VARCHAR AND task.status = 'NEW'
            AND (task.priority, task.ready_at, task.id) > (
                ranges.low_priority, ranges.low_ready_at - %(look_back)s * INTERVAL '1 second', ranges.low_id)
            AND task.priority < ranges.end_priority
        ORDER BY task.priority, task.ready_at, task.id
        LIMIT %(at_most)s::INTEGER
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS found ON true
    LIMIT %(at_most)s::INTEGER
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
