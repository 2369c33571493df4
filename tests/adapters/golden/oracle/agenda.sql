-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/EXTRACT-datetime.html "EXTRACT (datetime)"
-- A plain read, so FETCH FIRST may stand.
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
FETCH FIRST 1 ROWS ONLY
