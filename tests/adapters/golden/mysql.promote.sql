-- https://dev.mysql.com/doc/refman/9.4/en/innodb-locking-reads.html "Locking Reads" (SKIP LOCKED); https://dev.mysql.com/doc/refman/9.4/en/index-hints.html "Index Hints"
SELECT task.id AS id
FROM task FORCE INDEX (`ix_task_promote`)
WHERE task.status = 'SCHEDULED' AND task.priority = %s AND task.scheduled_at <= UTC_TIMESTAMP(6)
ORDER BY task.scheduled_at, task.id
LIMIT %s
FOR UPDATE SKIP LOCKED;

UPDATE task SET status='NEW', ready_at=UTC_TIMESTAMP(6) WHERE task.id IN (__[POSTCOMPILE_ids])
