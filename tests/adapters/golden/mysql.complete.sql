-- https://dev.mysql.com/doc/refman/9.4/en/innodb-locking-reads.html "Locking Reads"; https://dev.mysql.com/doc/refman/9.4/en/index-hints.html "Index Hints"
-- No condition but the key in the read: InnoDB would lock what it reads before it looks at the rest.
SELECT task.id, task.epoch, task.status
FROM task FORCE INDEX (`PRIMARY`)
WHERE task.id IN (__[POSTCOMPILE_ids])
ORDER BY task.id
FOR UPDATE;

UPDATE task
SET status='COMPLETED', finished_at=UTC_TIMESTAMP(6), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
WHERE task.id IN (__[POSTCOMPILE_ids])
