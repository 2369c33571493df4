-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/EXTRACT-datetime.html "EXTRACT (datetime)"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (for_update_clause: SKIP LOCKED; no row_limiting_clause beside it)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html "UPDATE"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC"
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
