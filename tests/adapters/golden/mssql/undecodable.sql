-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
UPDATE task
SET status='FAILED', epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL,
    error=%(new_error)s, finished_at=sysutcdatetime()
WHERE task.id = %(raw_id)s
