-- https://www.cockroachlabs.com/docs/stable/selection-queries "Selection Queries"
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (%(id_1_1)s::UUID)
ORDER BY task.id;

UPDATE task
SET status=%(status)s, epoch=(task.epoch + %(epoch_1)s), reserved_until=%(reserved_until)s,
    reserved_by=%(reserved_by)s, unique_hash=%(unique_hash)s, finished_at=clock_timestamp()
WHERE task.id IN (%(id_1_1)s::UUID) AND task.status IN (%(status_1_1)s, %(status_1_2)s, %(status_1_3)s)
