-- https://www.postgresql.org/docs/current/functions-array.html "Array Functions and Operators" (unnest of several arrays); https://www.postgresql.org/docs/current/sql-update.html "UPDATE" (FROM, RETURNING)
-- The values of each row come as arrays beside the ids.
WITH locked AS MATERIALIZED (
    SELECT task.id AS id, brought.delay AS delay, brought.uncounted AS uncounted,
        brought.new_error AS new_error, brought.new_errors AS new_errors
    FROM unnest(
        CAST(%(ids)s::UUID[] AS UUID[]), CAST(%(epochs)s::BIGINT[] AS BIGINT[]),
        CAST(%(delay)s::DOUBLE PRECISION[] AS DOUBLE PRECISION[]), CAST(%(uncounted)s::INTEGER[] AS INTEGER[]),
        CAST(%(new_error)s::TEXT[] AS TEXT[]), CAST(%(new_errors)s::TEXT[] AS TEXT[])
    ) AS brought(id, epoch, delay, uncounted, new_error, new_errors)
    JOIN task ON task.id = brought.id
    WHERE task.epoch = brought.epoch AND (task.status || '') = 'RUNNING'
    ORDER BY task.id
    FOR NO KEY UPDATE OF task
)
UPDATE task
SET status=CASE WHEN (locked.delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=(clock_timestamp() + locked.delay * INTERVAL '1 second'), ready_at=clock_timestamp(),
    attempt=(task.attempt - locked.uncounted), reserved_until=NULL, reserved_by=NULL,
    error=coalesce(CAST(locked.new_error AS JSONB), task.error),
    errors=coalesce(CAST(locked.new_errors AS JSONB), task.errors)
FROM locked
WHERE task.id = locked.id
RETURNING task.id
