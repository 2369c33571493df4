-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (row_limiting_clause: in a plain read only)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/EXTRACT-datetime.html "EXTRACT (datetime)" (DAY, HOUR, MINUTE, SECOND of the difference of two TIMESTAMPs, an INTERVAL DAY TO SECOND)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Comments.html "Comments" (INDEX_ASC hint: the table as it is named in the statement, without its schema)
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
