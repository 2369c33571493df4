-- https://dev.mysql.com/doc/refman/9.4/en/innodb-locking-reads.html "Locking Reads" (SKIP LOCKED); https://dev.mysql.com/doc/refman/9.4/en/index-hints.html "Index Hints"
SELECT task.id, task.epoch, task.status
FROM task FORCE INDEX (`PRIMARY`)
WHERE task.id IN (__[POSTCOMPILE_ids])
ORDER BY task.id
FOR UPDATE SKIP LOCKED;

UPDATE task
SET reserved_until=timestampadd(MICROSECOND, round(%s * 1e6), UTC_TIMESTAMP(6))
WHERE task.id IN (__[POSTCOMPILE_ids])
