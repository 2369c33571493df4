-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer, in seconds)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

UPDATE task
SET status=CASE WHEN (:delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=CASE WHEN (:delay > 0) THEN sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:delay,
    'SECOND') ELSE task.scheduled_at END, ready_at=sys_extract_utc(SYSTIMESTAMP), attempt=(task.attempt - 1),
    epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
WHERE task.id IN (:ids_1)
