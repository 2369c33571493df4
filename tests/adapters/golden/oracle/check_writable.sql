-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html
UPDATE task
SET epoch=task.epoch
WHERE task.id = :id_1
