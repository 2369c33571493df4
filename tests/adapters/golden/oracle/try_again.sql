-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: WAIT integer, in seconds)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html "TO_CLOB (character)"
-- https://docs.oracle.com/en/database/oracle/oracle-database/26/adlob/supported-functions-and-operators.html "SQL Functions and Operators Supported for Use with LOBs"
SELECT task.id, task.epoch, task.status
FROM task
WHERE task.id IN (:ids_1)
ORDER BY task.id
FOR UPDATE WAIT 2;

UPDATE task
SET status=CASE WHEN (:delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:delay, 'SECOND')),
    ready_at=sys_extract_utc(SYSTIMESTAMP), attempt=(task.attempt - :uncounted), reserved_until=NULL,
    reserved_by=NULL, error=coalesce(to_clob(:new_error), task.error), errors=coalesce(to_clob(:new_errors),
    task.errors)
WHERE task.id IN (:ids_1)
