-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
-- https://learn.microsoft.com/sql/t-sql/statements/delete-transact-sql "DELETE"
SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id;

DELETE
FROM task
WHERE task.id IN (%(ids_1)s)
