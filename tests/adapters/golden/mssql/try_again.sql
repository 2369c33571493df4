-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql "DATEADD" (the number is an int, so seconds and microseconds apart)
SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

UPDATE task
SET status=CASE WHEN (%(delay)s > 0) THEN 'SCHEDULED' ELSE 'NEW' END, scheduled_at=dateadd(MICROSECOND,
    CAST((CAST(%(delay)s AS FLOAT(53)) - floor(CAST(%(delay)s AS FLOAT(53)))) * 1e6 AS INTEGER), dateadd(SECOND,
    CAST(floor(CAST(%(delay)s AS FLOAT(53))) AS INTEGER), sysutcdatetime())), ready_at=sysutcdatetime(),
    attempt=(task.attempt - %(uncounted)s), reserved_until=NULL, reserved_by=NULL, error=coalesce(%(new_error)s,
    task.error), errors=coalesce(%(new_errors)s, task.errors)
WHERE task.id IN (%(ids_1)s)
