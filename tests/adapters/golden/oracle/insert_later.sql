-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT" (one row of VALUES before 23ai; no conflict clause)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Selecting-from-the-DUAL-Table.html "Selecting from the DUAL Table" (before 23ai a SELECT needs FROM)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SYS_EXTRACT_UTC.html "SYS_EXTRACT_UTC" (a TIMESTAMP without zone)
SELECT sys_extract_utc(SYSTIMESTAMP) AS sys_extract_utc_1 FROM DUAL;

INSERT INTO task (id, name, queue, priority, status, scheduled_at, body, headers, max_attempts)
VALUES (:id, :name, :queue, :priority, :status, :scheduled_at, :body, :headers, :max_attempts)
