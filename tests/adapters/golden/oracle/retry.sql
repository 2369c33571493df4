-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SAVEPOINT.html "SAVEPOINT"
SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (:id_1_1)
ORDER BY task.id
FOR UPDATE SKIP LOCKED;

UPDATE task
SET status=:status, scheduled_at=sys_extract_utc(SYSTIMESTAMP), ready_at=sys_extract_utc(SYSTIMESTAMP),
    attempt=:attempt, crashes=:crashes, epoch=(task.epoch + :epoch_1), finished_at=:finished_at
WHERE task.id IN (:id_1_1) AND task.status IN (:status_1_1, :status_1_2);

SELECT task.id, task.name, task.unique_key, task.status
FROM task
WHERE task.id IN (:id_1_1, :id_1_2)
ORDER BY task.id
FOR UPDATE SKIP LOCKED;

SAVEPOINT sa_savepoint_1;

UPDATE task
SET status=:status, scheduled_at=sys_extract_utc(SYSTIMESTAMP), ready_at=sys_extract_utc(SYSTIMESTAMP),
    attempt=:attempt, crashes=:crashes, epoch=(task.epoch + :epoch_1), unique_hash=:unique_hash,
    finished_at=:finished_at
WHERE task.id = :id_1 AND task.status IN (:status_1_1, :status_1_2)
