-- https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE "The Locking Clause" (SKIP LOCKED); https://www.postgresql.org/docs/current/sql-update.html "UPDATE" (FROM, RETURNING)
-- SKIP LOCKED: a renewal that waits for one row lets all other leases lapse.
WITH locked AS MATERIALIZED (
    SELECT task.id AS id
    FROM unnest(CAST(%(ids)s::UUID[] AS UUID[]), CAST(%(epochs)s::BIGINT[] AS BIGINT[])) AS brought(id, epoch)
    JOIN task ON task.id = brought.id
    WHERE task.epoch = brought.epoch AND (task.status || '') = 'RUNNING'
    ORDER BY task.id
    FOR NO KEY UPDATE OF task SKIP LOCKED
)
UPDATE task
SET reserved_until=(clock_timestamp() + %(lease)s * INTERVAL '1 second')
FROM locked
WHERE task.id = locked.id
RETURNING task.id
