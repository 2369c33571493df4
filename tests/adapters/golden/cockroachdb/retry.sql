-- https://www.cockroachlabs.com/docs/stable/select-clause "Simple SELECT Clause" (a plain read: SERIALIZABLE tells at the COMMIT)
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/savepoint "SAVEPOINT" (nested transactions; RELEASE, ROLLBACK TO)
SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (%(id_1_1)s::UUID)
ORDER BY task.id;

UPDATE task
SET status=%(status)s, scheduled_at=clock_timestamp(), ready_at=clock_timestamp(), attempt=%(attempt)s,
    crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s), finished_at=%(finished_at)s
WHERE task.id IN (%(id_1_1)s::UUID) AND task.status IN (%(status_1_1)s, %(status_1_2)s);

SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (%(id_1_1)s::UUID, %(id_1_2)s::UUID)
ORDER BY task.id;

SAVEPOINT sa_savepoint_1;

UPDATE task
SET status=%(status)s, scheduled_at=clock_timestamp(), ready_at=clock_timestamp(), attempt=%(attempt)s,
    crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s), unique_hash=%(unique_hash)s, finished_at=%(finished_at)s
WHERE task.id = %(id_1)s::UUID AND task.status IN (%(status_1_1)s, %(status_1_2)s);

RELEASE SAVEPOINT sa_savepoint_1
