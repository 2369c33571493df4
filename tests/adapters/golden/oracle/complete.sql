-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer, in seconds)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/IN-Condition.html "IN Condition" (an expression list has up to 1,000 members)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- In the order of the ids, so that two finishes never wait for each other in a circle.
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

UPDATE task
SET status='COMPLETED', finished_at=sys_extract_utc(SYSTIMESTAMP), reserved_until=NULL, reserved_by=NULL,
    unique_hash=NULL
WHERE task.id IN (:ids_1)
