-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql
UPDATE task
SET status=%(new_status)s, attempt=(task.attempt + 1), result=coalesce(%(new_result)s, task.result),
    error=coalesce(%(new_error)s, task.error), errors=coalesce(%(new_errors)s, task.errors),
    finished_at=sysutcdatetime(), unique_hash=NULL, epoch=(task.epoch + 1)
WHERE task.id = %(old_id)s AND task.epoch = %(old_epoch)s AND task.status = 'NEW'
