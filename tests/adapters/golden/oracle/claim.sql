-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/cncpt/data-concurrency-and-consistency.html "Data Concurrency and Consistency" (statement-level read consistency: a cursor sees the table as of its opening)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/NUMTODSINTERVAL.html "NUMTODSINTERVAL" (any number of seconds, with fractions)
-- No row limit: the cursor is read for exactly the rows wanted, each of which locks as it is fetched. Then the rows are
-- read again under their locks, with what they must be, and as they will be; only these are changed.
SELECT /*+ INDEX_ASC(task ix_task_claim) */ task.id AS id
FROM task
WHERE CASE WHEN (task.status = 'NEW') THEN task.queue END = :of_queue
    AND CASE WHEN (task.status = 'NEW') THEN task.status END = 'NEW'
ORDER BY CASE WHEN (task.status = 'NEW') THEN task.priority END,
    CASE WHEN (task.status = 'NEW') THEN task.ready_at END, CASE WHEN (task.status = 'NEW') THEN task.id END
FOR UPDATE SKIP LOCKED;

SELECT task.id AS id, task.name, task.queue, task.priority, task.body, task.headers, task.attempt + 1 AS attempt,
    task.max_attempts, task.crashes, task.epoch + 1 AS epoch, task.errors, task.error,
    task.scheduled_at AS scheduled_at, task.created_at AS created_at, task.ready_at AS ready_at
FROM task
WHERE task.id IN (:ids_1) AND task.queue = :of_queue AND task.status = 'NEW';

UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=(sys_extract_utc(SYSTIMESTAMP) + numtodsinterval(:lease, 'SECOND')), reserved_by=:holder,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id IN (:ids_1)
