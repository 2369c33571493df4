-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html
UPDATE task
SET status=:new_status, attempt=(task.attempt + 1), result=coalesce(to_clob(:new_result), task.result),
    error=coalesce(to_clob(:new_error), task.error), errors=coalesce(to_clob(:new_errors), task.errors),
    finished_at=sys_extract_utc(SYSTIMESTAMP), unique_hash=NULL, epoch=(task.epoch + 1)
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'NEW'
