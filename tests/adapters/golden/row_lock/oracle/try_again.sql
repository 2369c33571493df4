-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html
UPDATE task
SET status=CASE WHEN (:delay > 0) THEN 'SCHEDULED' ELSE 'NEW' END,
    scheduled_at=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:delay, 'SECOND')),
    ready_at=sys_extract_utc(SYSTIMESTAMP), attempt=(task.attempt + :counted),
    error=coalesce(to_clob(:new_error), task.error), errors=coalesce(to_clob(:new_errors), task.errors),
    unique_hash=CASE WHEN (task.unique_until = 'start' AND :counted = 1) THEN NULL ELSE task.unique_hash END,
    epoch=(task.epoch + 1)
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'NEW'
