-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html "TO_CLOB (character)"
SELECT sys_extract_utc(SYSTIMESTAMP) AS sys_extract_utc_1 FROM DUAL;

SELECT task.id, task.error
FROM task
WHERE task.id IN (:ids_1);

SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

UPDATE task
SET status=:new_status, scheduled_at=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:delay, 'SECOND')),
    finished_at=CASE WHEN (:new_status = 'FAILED') THEN sys_extract_utc(SYSTIMESTAMP) ELSE NULL END,
    error=to_clob(:new_error), unique_hash=CASE WHEN (:new_status = 'FAILED') THEN NULL ELSE task.unique_hash END,
    attempt=(task.attempt - 1), epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
WHERE task.id IN (:ids_1)
