-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql
-- https://learn.microsoft.com/sql/t-sql/language-elements/case-transact-sql
-- https://learn.microsoft.com/sql/t-sql/functions/dateadd-transact-sql (the number is an int)
UPDATE task
SET status=CASE WHEN (%(delay)s > 0) THEN 'SCHEDULED' ELSE 'NEW' END, scheduled_at=dateadd(MICROSECOND,
    CAST((CAST(%(delay)s AS FLOAT(53)) - floor(CAST(%(delay)s AS FLOAT(53)))) * 1e6 AS INTEGER), dateadd(SECOND,
    CAST(floor(CAST(%(delay)s AS FLOAT(53))) AS INTEGER), sysutcdatetime())),
    ready_at=sysutcdatetime(), epoch=(task.epoch + 1)
WHERE task.id = %(old_id)s AND task.epoch = %(old_epoch)s AND task.status = 'NEW'
