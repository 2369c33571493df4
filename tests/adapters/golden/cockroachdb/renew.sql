-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (FROM, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (unnest of several arrays; clock_timestamp)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
UPDATE task
SET reserved_until=(clock_timestamp() + %(lease)s * INTERVAL '1 second')
FROM unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id;

SELECT task.id, task.epoch
FROM task
WHERE task.id IN (%(ids_1)s::UUID) AND task.status = 'RUNNING'
