-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

UPDATE task
SET status=%(new_status)s, result=coalesce(%(new_result)s, task.result), error=coalesce(%(new_error)s, task.error),
    errors=coalesce(%(new_errors)s, task.errors), finished_at=sysutcdatetime(), reserved_until=NULL,
    reserved_by=NULL, unique_hash=NULL
WHERE task.id IN (%(ids_1)s)
