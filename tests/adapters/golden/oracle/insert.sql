-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT"
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts)
VALUES (:id, :name, :queue, :priority, :status, :body, :headers, :max_attempts)
