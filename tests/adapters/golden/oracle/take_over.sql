-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/cncpt/data-concurrency-and-consistency.html "Data Concurrency and Consistency" (statement-level read consistency: a cursor sees the table as of its opening)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/TO_CLOB-character.html "TO_CLOB (character)"
-- As the claim: fetched one by one, read again under the locks, changed by id.
SELECT /*+ INDEX_ASC(task ix_task_take_over) */ task.id AS id
FROM task
WHERE CASE WHEN (task.status = 'RUNNING') THEN task.status END = 'RUNNING'
    AND CASE WHEN (task.status = 'RUNNING') THEN task.reserved_until END < sys_extract_utc(SYSTIMESTAMP)
ORDER BY CASE WHEN (task.status = 'RUNNING') THEN task.reserved_until END,
    CASE WHEN (task.status = 'RUNNING') THEN task.id END
FOR UPDATE SKIP LOCKED;

SELECT task.id AS id,
    CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN 'FAILED' ELSE 'NEW' END
    AS status
FROM task
WHERE task.id IN (:ids_1) AND task.status = 'RUNNING' AND task.reserved_until < sys_extract_utc(SYSTIMESTAMP);

UPDATE task
SET status=CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN 'FAILED' ELSE
    'NEW' END, ready_at=CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN
    task.ready_at ELSE sys_extract_utc(SYSTIMESTAMP) END,
    finished_at=CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN
    sys_extract_utc(SYSTIMESTAMP) ELSE NULL END,
    error=CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN to_clob(:param_1)
    ELSE task.error END,
    unique_hash=CASE WHEN (task.crashes + 1 >= :max_crashes OR task.attempt >= task.max_attempts) THEN NULL ELSE
    task.unique_hash END, crashes=(task.crashes + 1), epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
WHERE task.id IN (:ids_1)
