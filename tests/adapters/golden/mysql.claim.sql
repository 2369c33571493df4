-- https://dev.mysql.com/doc/refman/en/innodb-locking-reads.html, and /index-hints.html. The read shows the row as it
-- will be; the change goes by primary key.
SELECT task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error,
    task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.ready_at AS ready_at
FROM task FORCE INDEX (`ix_task_claim`)
WHERE task.queue = %s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %s
FOR UPDATE SKIP LOCKED;

UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=timestampadd(MICROSECOND, round(%s * 1e6), UTC_TIMESTAMP(6)), reserved_by=%s,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id IN (__[POSTCOMPILE_ids])
