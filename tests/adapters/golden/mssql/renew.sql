-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql "DATEADD" (the number is an int, so seconds and microseconds apart)
SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

UPDATE task
SET reserved_until=dateadd(MICROSECOND,
    CAST((CAST(%(lease)s AS FLOAT(53)) - floor(CAST(%(lease)s AS FLOAT(53)))) * 1e6 AS INTEGER), dateadd(SECOND,
    CAST(floor(CAST(%(lease)s AS FLOAT(53))) AS INTEGER), sysutcdatetime()))
WHERE task.id IN (%(ids_1)s);

SELECT task.id, task.epoch
FROM task
WHERE task.id IN (%(ids_1)s) AND task.status = 'RUNNING'
