-- https://dev.mysql.com/doc/refman/5.7/en/update.html "UPDATE Statement"
-- MySQL before 8 and MariaDB before 10.6 have no SKIP LOCKED: candidates are read, each is changed if still as read.
SELECT task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error,
    task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.ready_at AS ready_at,
    task.epoch AS old_epoch, task.status AS old_status
FROM task
WHERE task.queue = %s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %s;

UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=timestampadd(MICROSECOND, round(%s * 1e6), UTC_TIMESTAMP(6)), reserved_by=%s,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id = %s AND task.epoch = %s AND task.status = %s
