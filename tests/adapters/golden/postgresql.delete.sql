-- https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-ROWS "Row-Level Locks"; https://www.postgresql.org/docs/current/sql-delete.html "DELETE" (USING, RETURNING)
-- FOR UPDATE, not FOR NO KEY UPDATE: a DELETE takes that lock, and must not wait for it out of order.
WITH locked AS MATERIALIZED (
    SELECT task.id AS id
    FROM unnest(CAST(%(ids)s::UUID[] AS UUID[]), CAST(%(epochs)s::BIGINT[] AS BIGINT[])) AS brought(id, epoch)
    JOIN task ON task.id = brought.id
    WHERE task.epoch = brought.epoch AND (task.status || '') = 'RUNNING'
    ORDER BY task.id
    FOR UPDATE OF task
)
DELETE FROM task USING locked WHERE task.id = locked.id RETURNING task.id
