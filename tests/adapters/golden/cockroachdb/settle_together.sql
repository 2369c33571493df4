-- https://www.cockroachlabs.com/docs/stable/select-for-update "SELECT FOR UPDATE and FOR SHARE" (waits; SKIP LOCKED is not used)
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/delete "DELETE" (USING since 22.2, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
SELECT task.id
FROM task
WHERE task.id IN (%(ids_1)s::UUID, %(ids_2)s::UUID)
ORDER BY task.id
FOR UPDATE;

UPDATE task
SET status='COMPLETED', finished_at=clock_timestamp(), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id;

DELETE
FROM task
USING unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
