-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/IN-Condition.html "IN Condition" (an expression list has up to 1,000 members)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (:id_1_1)
ORDER BY task.id
FOR UPDATE SKIP LOCKED;

UPDATE task
SET status=:status, epoch=(task.epoch + :epoch_1), reserved_until=:reserved_until, reserved_by=:reserved_by,
    unique_hash=:unique_hash, finished_at=sys_extract_utc(SYSTIMESTAMP)
WHERE task.id IN (:id_1_1) AND task.status IN (:status_1_1, :status_1_2, :status_1_3)
