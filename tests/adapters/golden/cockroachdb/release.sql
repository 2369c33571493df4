-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
UPDATE task
SET status=CASE WHEN (%(delay)s > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=CASE WHEN (%(delay)s > 0) THEN clock_timestamp() + %(delay)s * INTERVAL '1 second' ELSE
    task.scheduled_at END, ready_at=clock_timestamp(), attempt=(task.attempt - 1), epoch=(task.epoch + 1),
    reserved_until=NULL, reserved_by=NULL
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
