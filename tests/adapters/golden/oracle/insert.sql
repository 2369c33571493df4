-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT" (one row of VALUES before 23ai; no conflict clause)
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts)
VALUES (:id, :name, :queue, :priority, :status, :body, :headers, :max_attempts)
