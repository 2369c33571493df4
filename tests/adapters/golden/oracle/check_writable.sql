-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
UPDATE task
SET epoch=task.epoch
WHERE task.id = :id_1
