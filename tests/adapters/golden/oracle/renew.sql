-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/IN-Condition.html "IN Condition" (an expression list has up to 1,000 members)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE SKIP LOCKED;

UPDATE task
SET reserved_until=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:lease, 'SECOND'))
WHERE task.id IN (:ids_1);

SELECT task.id, task.epoch
FROM task
WHERE task.id IN (:ids_1) AND task.status = 'RUNNING'
