-- https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING "Data-Modifying Statements in WITH"; https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE "The Locking Clause"
-- One statement: locks in the order of the ids and waits for them, then changes and tells which were still held.
WITH locked AS MATERIALIZED (
    SELECT task.id AS id
    FROM unnest(CAST(%(ids)s::UUID[] AS UUID[]), CAST(%(epochs)s::BIGINT[] AS BIGINT[])) AS brought(id, epoch)
    JOIN task ON task.id = brought.id
    WHERE task.epoch = brought.epoch AND (task.status || '') = 'RUNNING'
    ORDER BY task.id
    FOR NO KEY UPDATE OF task
)
UPDATE task
SET status='COMPLETED', finished_at=clock_timestamp(), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
FROM locked
WHERE task.id = locked.id
RETURNING task.id
