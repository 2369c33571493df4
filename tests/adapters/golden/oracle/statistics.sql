-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SELECT.html "SELECT" (row_limiting_clause: in a plain read only)
SELECT task.queue, task.status, count(*) AS count_1, min(task.ready_at) AS min_1, min(task.reserved_until) AS min_2
FROM task
GROUP BY task.queue, task.status
ORDER BY task.queue;

SELECT sys_extract_utc(SYSTIMESTAMP) AS sys_extract_utc_1 FROM DUAL
