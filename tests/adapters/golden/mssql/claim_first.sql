-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/relational-databases/indexes/create-filtered-indexes "Create filtered indexes" (the condition of the query is that of the filter, as a literal; INDEX hint)
-- https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql "TOP" (with ORDER BY the first rows in that order)
SELECT TOP 1 task.id AS id
FROM task WITH (INDEX(ix_task_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
