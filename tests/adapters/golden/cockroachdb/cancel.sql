-- https://www.cockroachlabs.com/docs/stable/select-clause "Simple SELECT Clause" (a plain read: SERIALIZABLE tells at the COMMIT)
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (%(id_1_1)s::UUID)
ORDER BY task.id;

UPDATE task
SET status=%(status)s, epoch=(task.epoch + %(epoch_1)s), reserved_until=%(reserved_until)s,
    reserved_by=%(reserved_by)s, unique_hash=%(unique_hash)s, finished_at=clock_timestamp()
WHERE task.id IN (%(id_1_1)s::UUID) AND task.status IN (%(status_1_1)s, %(status_1_2)s, %(status_1_3)s)
