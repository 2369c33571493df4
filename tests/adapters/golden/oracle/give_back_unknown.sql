-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer, in seconds)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Selecting-from-the-DUAL-Table.html "Selecting from the DUAL Table" (before 23ai a SELECT needs FROM)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
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
