-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT" (one row of VALUES before 23ai; no conflict clause)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SAVEPOINT.html "SAVEPOINT"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/ROLLBACK.html "ROLLBACK" (TO SAVEPOINT; there is no RELEASE SAVEPOINT)
-- ORA-00001 undoes the INSERT alone (statement-level rollback); of several rows sent at once those before it would stay,
-- which the savepoint undoes.
SAVEPOINT sa_savepoint_1;

INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (:id, :name, :queue, :priority, :status, :body, :headers, :max_attempts, :unique_key, :unique_hash,
    :unique_until)
