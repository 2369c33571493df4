-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html "TO_CLOB (character)"
UPDATE task
SET status='FAILED', epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL,
    error=to_clob(:new_error), finished_at=sys_extract_utc(SYSTIMESTAMP)
WHERE task.id = :raw_id
