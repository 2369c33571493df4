-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html
UPDATE task
SET status=CASE WHEN (:delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:delay, 'SECOND')),
    ready_at=sys_extract_utc(SYSTIMESTAMP), epoch=(task.epoch + 1)
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'NEW'
