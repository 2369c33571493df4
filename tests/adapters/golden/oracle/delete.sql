-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/DELETE.html "DELETE"
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

DELETE
FROM task
WHERE task.id IN (:ids_1)
