-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK)
SELECT task.id
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s, %(ids_2)s)
ORDER BY task.id;

SELECT task.id, task.epoch, task.status
FROM task WITH (UPDLOCK, ROWLOCK)
WHERE task.id IN (%(ids_1)s)
ORDER BY task.id
