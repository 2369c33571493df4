-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- One statement, guarded by the epoch.
UPDATE task
SET status='COMPLETED', finished_at=clock_timestamp(), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
