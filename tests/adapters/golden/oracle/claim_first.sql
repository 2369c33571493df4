-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- The caller fetches one row.
SELECT /*+ INDEX_ASC(task ix_task_claim) */ task.id AS id
FROM task
WHERE CASE WHEN (task.status = 'NEW') THEN task.queue END = :of_queue
    AND CASE WHEN (task.status = 'NEW') THEN task.status END = 'NEW'
ORDER BY CASE WHEN (task.status = 'NEW') THEN task.priority END,
    CASE WHEN (task.status = 'NEW') THEN task.ready_at END, CASE WHEN (task.status = 'NEW') THEN task.id END
FOR UPDATE SKIP LOCKED
