-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SAVEPOINT.html "SAVEPOINT"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/ROLLBACK.html "ROLLBACK"
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html "INSERT"
-- ORA-00001 undoes the INSERT; the savepoint keeps what the caller did before.
SAVEPOINT sa_savepoint_1;

INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (:id, :name, :queue, :priority, :status, :body, :headers, :max_attempts, :unique_key, :unique_hash,
    :unique_until)
