-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (group_by_clause)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Selecting-from-the-DUAL-Table.html "Selecting from the DUAL Table" (before 23ai a SELECT needs FROM)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
SELECT task.queue, task.status, count(*) AS count_1, min(task.ready_at) AS min_1, min(task.reserved_until) AS min_2
FROM task
GROUP BY task.queue, task.status
ORDER BY task.queue;

SELECT sys_extract_utc(SYSTIMESTAMP) AS sys_extract_utc_1 FROM DUAL
