-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- In the order of the ids, so that two finishes never wait for each other in a circle.
SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

UPDATE task
SET status='COMPLETED', finished_at=sysutcdatetime(), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
WHERE task.id IN (%(ids_1)s)
