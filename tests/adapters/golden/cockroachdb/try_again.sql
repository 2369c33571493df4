-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
UPDATE task
SET status=CASE WHEN (brought.delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=(clock_timestamp() + brought.delay * INTERVAL '1 second'), ready_at=clock_timestamp(),
    attempt=(task.attempt - brought.uncounted), reserved_until=NULL, reserved_by=NULL,
    error=coalesce(CAST(brought.new_error AS JSONB), task.error), errors=coalesce(CAST(brought.new_errors AS JSONB),
    task.errors)
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[]), CAST(%(delay)s AS DOUBLE PRECISION[]),
    CAST(%(uncounted)s AS INTEGER[]), CAST(%(new_error)s AS TEXT[]), CAST(%(new_errors)s AS TEXT[])) AS brought(id,
    epoch, delay, uncounted, new_error, new_errors)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
