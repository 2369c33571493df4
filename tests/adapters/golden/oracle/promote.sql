-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; its restrictions; row_limiting_clause: not beside it; row_limiting_clause: in a plain read only)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/EXTRACT-datetime.html "EXTRACT (datetime)" (DAY, HOUR, MINUTE, SECOND of the difference of two TIMESTAMPs, an INTERVAL DAY TO SECOND)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/cncpt/data-concurrency-and-consistency.html "Data Concurrency and Consistency" (statement-level read consistency: a cursor sees the table as of its opening)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE" (one table; returning_clause needs INTO)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- As the claim: fetched one by one, read again under the locks, changed by id.
SELECT /*+ INDEX_ASC(task ix_task_promote) */ task.priority,
    EXTRACT(day FROM (task.scheduled_at - sys_extract_utc(SYSTIMESTAMP))) * 86400 + EXTRACT(hour FROM
    (task.scheduled_at - sys_extract_utc(SYSTIMESTAMP))) * 3600 + EXTRACT(minute FROM (task.scheduled_at -
    sys_extract_utc(SYSTIMESTAMP))) * 60 + EXTRACT(second FROM (task.scheduled_at - sys_extract_utc(SYSTIMESTAMP)))
    * 1 AS seconds
FROM task
WHERE CASE WHEN (task.status = 'SCHEDULED') THEN task.status END = 'SCHEDULED'
    AND CASE WHEN (task.status = 'SCHEDULED') THEN task.priority END > :after
ORDER BY CASE WHEN (task.status = 'SCHEDULED') THEN task.priority END,
    CASE WHEN (task.status = 'SCHEDULED') THEN task.scheduled_at END
FETCH FIRST 1 ROWS ONLY;

SELECT /*+ INDEX_ASC(task ix_task_promote) */ task.id AS id
FROM task
WHERE CASE WHEN (task.status = 'SCHEDULED') THEN task.status END = 'SCHEDULED'
    AND CASE WHEN (task.status = 'SCHEDULED') THEN task.priority END = :of_priority
    AND CASE WHEN (task.status = 'SCHEDULED') THEN task.scheduled_at END <= sys_extract_utc(SYSTIMESTAMP)
ORDER BY CASE WHEN (task.status = 'SCHEDULED') THEN task.scheduled_at END,
    CASE WHEN (task.status = 'SCHEDULED') THEN task.id END
FOR UPDATE SKIP LOCKED;

SELECT task.id AS id
FROM task
WHERE task.id IN (:ids_1) AND task.status = 'SCHEDULED' AND task.priority = :of_priority
    AND task.scheduled_at <= sys_extract_utc(SYSTIMESTAMP);

UPDATE task
SET status='NEW', ready_at=sys_extract_utc(SYSTIMESTAMP)
WHERE task.id IN (:ids_1)
