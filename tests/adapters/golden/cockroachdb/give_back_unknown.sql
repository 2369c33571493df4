-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
SELECT clock_timestamp() AS clock_timestamp_1;

SELECT task.id, CAST(task.error AS TEXT) AS error
FROM task
WHERE task.id IN (%(ids_1)s::UUID);

UPDATE task
SET status=brought.new_status, scheduled_at=(clock_timestamp() + %(delay)s * INTERVAL '1 second'),
    finished_at=CASE WHEN (brought.new_status = 'FAILED') THEN clock_timestamp() ELSE NULL END,
    error=CAST(brought.new_error AS JSONB),
    unique_hash=CASE WHEN (brought.new_status = 'FAILED') THEN NULL ELSE task.unique_hash END,
    attempt=(task.attempt - 1), epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[]), CAST(%(new_status)s AS VARCHAR(9)[]),
    CAST(%(new_error)s AS TEXT[])) AS brought(id, epoch, new_status, new_error)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
