-- https://www.iso.org/standard/76584.html "SQL/Foundation" (query expression)
-- A dialect nobody has written an adapter for gets standard SQL: candidates are read, each is changed if still as read.
SELECT task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error,
    task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.ready_at AS ready_at,
    task.epoch AS old_epoch, task.status AS old_status
FROM task
WHERE task.queue = :of_queue AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT :at_most;

UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=(CURRENT_TIMESTAMP + :lease * INTERVAL '1' SECOND), reserved_by=:holder,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = :old_status
