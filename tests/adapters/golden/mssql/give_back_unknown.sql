-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql "DATEADD" (the number is an int, so seconds and microseconds apart)
SELECT sysutcdatetime() AS sysutcdatetime_1;

SELECT task.id, task.error
FROM task
WHERE task.id IN (%(ids_1)s);

SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

UPDATE task
SET status=%(new_status)s, scheduled_at=dateadd(MICROSECOND,
    CAST((CAST(%(delay)s AS FLOAT(53)) - floor(CAST(%(delay)s AS FLOAT(53)))) * 1e6 AS INTEGER), dateadd(SECOND,
    CAST(floor(CAST(%(delay)s AS FLOAT(53))) AS INTEGER), sysutcdatetime())),
    finished_at=CASE WHEN ('FAILED' = %(new_status)s) THEN sysutcdatetime() ELSE NULL END, error=%(new_error)s,
    unique_hash=CASE WHEN ('FAILED' = %(new_status)s) THEN NULL ELSE task.unique_hash END,
    attempt=(task.attempt - 1), epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
WHERE task.id IN (%(ids_1)s)
