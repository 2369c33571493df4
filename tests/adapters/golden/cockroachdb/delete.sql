-- https://www.cockroachlabs.com/docs/stable/select-for-update "SELECT FOR UPDATE and FOR SHARE"
-- https://www.cockroachlabs.com/docs/stable/delete "DELETE" (USING, RETURNING)
DELETE
FROM task
USING unnest(CAST(%(ids)s AS UUID[]), CAST(%(epochs)s AS BIGINT[])) AS brought(id, epoch)
WHERE task.id = brought.id AND task.epoch = brought.epoch AND task.status = 'RUNNING'
RETURNING task.id
