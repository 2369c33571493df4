-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (row_limiting_clause: in a plain read only)
SELECT task.id
FROM task
WHERE task.queue = :queue_1 AND task.status IN (:status_1_1) AND task.id > :id_1
ORDER BY task.id
FETCH FIRST 1000 ROWS ONLY
