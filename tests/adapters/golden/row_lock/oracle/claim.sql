-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html (for_update_clause: SKIP LOCKED; no row_limiting_clause beside it; locks last to the end of the transaction)
-- No row limit: the cursor is read for exactly the rows wanted, each of which locks as it is fetched. Then the rows are
-- read again under their locks, with what they must be.
SELECT /*+ INDEX_ASC(task ix_task_claim) */ task.id AS id
FROM task
WHERE CASE WHEN (task.status = 'NEW') THEN task.queue END = :of_queue
    AND CASE WHEN (task.status = 'NEW') THEN task.status END = 'NEW'
ORDER BY CASE WHEN (task.status = 'NEW') THEN task.priority END,
    CASE WHEN (task.status = 'NEW') THEN task.ready_at END, CASE WHEN (task.status = 'NEW') THEN task.id END
FOR UPDATE SKIP LOCKED;

SELECT task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error, task.scheduled_at AS scheduled_at,
    task.created_at AS created_at, task.ready_at AS ready_at
FROM task
WHERE task.id IN (:ids_1) AND task.queue = :of_queue AND task.status = 'NEW'
