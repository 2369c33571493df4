-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT"
SELECT sys_extract_utc(SYSTIMESTAMP) AS sys_extract_utc_1 FROM DUAL;

INSERT INTO task (id, name, queue, priority, status, scheduled_at, body, headers, max_attempts)
VALUES (:id, :name, :queue, :priority, :status, :scheduled_at, :body, :headers, :max_attempts)
