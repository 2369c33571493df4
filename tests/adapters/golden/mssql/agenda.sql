-- https://learn.microsoft.com/sql/t-sql/functions/datediff-big-transact-sql "DATEDIFF_BIG" (MICROSECOND would overflow an int within 36 minutes)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/queries/select-order-by-clause-transact-sql "SELECT - ORDER BY clause" (OFFSET ... FETCH)
-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (INDEX)
SELECT task.priority, datediff_big(MICROSECOND, sysutcdatetime(), task.scheduled_at) * 1e-6 AS seconds
FROM task WITH (INDEX(ix_task_promote))
WHERE task.status = 'SCHEDULED' AND task.priority > %(after)s
ORDER BY task.priority, task.scheduled_at
OFFSET 0 ROWS
FETCH FIRST 1 ROWS ONLY
