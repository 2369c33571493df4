-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
UPDATE task
SET status=brought.new_status, result=coalesce(CAST(brought.new_result AS JSONB), task.result),
    error=coalesce(CAST(brought.new_error AS JSONB), task.error), errors=coalesce(CAST(brought.new_errors AS JSONB),
    task.errors), finished_at=clock_timestamp(), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[]), CAST(%(new_status)s AS VARCHAR(9)[]),
    CAST(%(new_result)s AS TEXT[]), CAST(%(new_error)s AS TEXT[]), CAST(%(new_errors)s AS TEXT[])) AS brought(id,
    epoch, new_status, new_result, new_error, new_errors)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
