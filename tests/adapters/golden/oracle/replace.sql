-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT" (one row of VALUES before 23ai; no conflict clause)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SAVEPOINT.html "SAVEPOINT"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/ROLLBACK.html "ROLLBACK" (TO SAVEPOINT; there is no RELEASE SAVEPOINT)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
SAVEPOINT sa_savepoint_1;

INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (:id, :name, :queue, :priority, :status, :body, :headers, :max_attempts, :unique_key, :unique_hash,
    :unique_until);

ROLLBACK TO SAVEPOINT sa_savepoint_1;

UPDATE task
SET queue=:queue, priority=:priority, status=:status, scheduled_at=sys_extract_utc(SYSTIMESTAMP),
    ready_at=sys_extract_utc(SYSTIMESTAMP), body=:body, headers=:headers, attempt=:attempt,
    max_attempts=:max_attempts, crashes=:crashes, epoch=(task.epoch + :epoch_1), unique_until=:unique_until,
    error=:error, errors=:errors
WHERE task.unique_hash = :taken_hash AND task.status IN (:status_1_1, :status_1_2);

SELECT task.id, task.status
FROM task
WHERE task.unique_hash = :unique_hash_1
