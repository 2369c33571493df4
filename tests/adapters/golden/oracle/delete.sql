-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer, in seconds)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/IN-Condition.html "IN Condition" (an expression list has up to 1,000 members)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/DELETE.html "DELETE" (one table; returning_clause needs INTO)
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

DELETE
FROM task
WHERE task.id IN (:ids_1)
