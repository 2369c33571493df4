-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC"
UPDATE task
SET epoch=task.epoch
WHERE task.id = :id_1
