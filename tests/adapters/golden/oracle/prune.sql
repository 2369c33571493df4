-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/DELETE.html "DELETE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SAVEPOINT.html "SAVEPOINT"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/ROLLBACK.html "ROLLBACK" (TO SAVEPOINT; there is no RELEASE SAVEPOINT)
-- As the claim: the cursor has no limit. A DELETE that a foreign key refuses is undone alone.
SELECT /*+ INDEX_ASC(task ix_task_prune) */ task.finished_at, task.id
FROM task
WHERE CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.status END = 'COMPLETED'
    AND CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED',
    'FAILED')) THEN task.finished_at END < sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(-:param_1, 'SECOND')
ORDER BY CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.finished_at END,
    CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.id END
FOR UPDATE SKIP LOCKED;

SAVEPOINT sa_savepoint_1;

DELETE
FROM task
WHERE task.status = 'COMPLETED' AND task.id IN (:id_1_1);

ROLLBACK TO SAVEPOINT sa_savepoint_1;

SELECT /*+ INDEX_ASC(task ix_task_prune) */ task.finished_at, task.id
FROM task
WHERE CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.status END = 'COMPLETED'
    AND CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED',
    'FAILED')) THEN task.finished_at END < sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(-:param_1,
    'SECOND') AND CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED',
    'FAILED')) THEN task.finished_at END >= :finished_at_1 AND (CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED',
    'FAILED')) THEN task.finished_at END > :finished_at_2 OR CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED',
    'FAILED')) THEN task.id END > :id_1)
ORDER BY CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.finished_at END,
    CASE WHEN (task.status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN task.id END
FOR UPDATE SKIP LOCKED;

SAVEPOINT sa_savepoint_2
