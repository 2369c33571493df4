-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
SELECT TOP 1 task.id AS id
FROM task WITH (INDEX(ix_task_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
