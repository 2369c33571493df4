-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html
INSERT INTO task_crash_note (task_id, attempt, "by") VALUES (:task_id, :attempt, :"by")
