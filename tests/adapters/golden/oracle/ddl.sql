-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-TABLE.html "CREATE TABLE" (datatype, DEFAULT, inline constraints, in this order)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Data-Types.html "Data Types" (RAW(16) and RAW(32); VARCHAR2(n CHAR); TIMESTAMP is TIMESTAMP(6); ANSI INTEGER and SMALLINT are NUMBER(38))
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Database-Object-Names-and-Qualifiers.html "Database Object Names and Qualifiers" (128 bytes, 30 where COMPATIBLE is below 12.2; reserved words)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-INDEX.html "CREATE INDEX" (function-based indexes; a row whose keys are all NULL is in no B-tree index)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CASE-Expressions.html "CASE Expressions" (without ELSE it is NULL)
-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SQL-JSON-Conditions.html "SQL/JSON Conditions" (IS JSON (STRICT))
-- Only rows of the named statuses are in an index: elsewhere each key is NULL. '' is NULL too, and is neither JSON nor a name.
CREATE TABLE task ( id RAW(16) NOT NULL, name VARCHAR2(120 CHAR) NOT NULL,
    queue VARCHAR2(64 CHAR) DEFAULT 'default' NOT NULL, priority SMALLINT DEFAULT 0 NOT NULL,
    status VARCHAR2(9 CHAR) DEFAULT 'NEW' NOT NULL,
    scheduled_at TIMESTAMP DEFAULT (sys_extract_utc(SYSTIMESTAMP)) NOT NULL,
    ready_at TIMESTAMP DEFAULT (sys_extract_utc(SYSTIMESTAMP)) NOT NULL,
    body CLOB CHECK (body IS JSON (STRICT)) NOT NULL, headers CLOB CHECK (headers IS JSON (STRICT)),
    attempt INTEGER DEFAULT 0 NOT NULL, max_attempts INTEGER DEFAULT 10 NOT NULL,
    crashes INTEGER DEFAULT 0 NOT NULL, epoch NUMBER(19) DEFAULT 0 NOT NULL, reserved_until TIMESTAMP,
    reserved_by VARCHAR2(200 CHAR), unique_key VARCHAR2(1024 CHAR), unique_hash RAW(32),
    unique_until VARCHAR2(5 CHAR), error CLOB CHECK (error IS JSON (STRICT)),
    errors CLOB CHECK (errors IS JSON (STRICT)), result CLOB,
    created_at TIMESTAMP DEFAULT (sys_extract_utc(SYSTIMESTAMP)) NOT NULL, finished_at TIMESTAMP, PRIMARY KEY (id) );

CREATE INDEX ix_task_claim ON task (CASE WHEN (status = 'NEW') THEN queue END,
    CASE WHEN (status = 'NEW') THEN status END, CASE WHEN (status = 'NEW') THEN priority END,
    CASE WHEN (status = 'NEW') THEN ready_at END, CASE WHEN (status = 'NEW') THEN id END);

CREATE INDEX ix_task_promote ON task (CASE WHEN (status = 'SCHEDULED') THEN status END,
    CASE WHEN (status = 'SCHEDULED') THEN priority END, CASE WHEN (status = 'SCHEDULED') THEN scheduled_at END,
    CASE WHEN (status = 'SCHEDULED') THEN id END);

CREATE INDEX ix_task_prune ON task (CASE WHEN (status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN status END,
    CASE WHEN (status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN finished_at END,
    CASE WHEN (status IN ('CANCELLED', 'COMPLETED', 'FAILED')) THEN id END);

CREATE INDEX ix_task_take_over ON task (CASE WHEN (status = 'RUNNING') THEN status END,
    CASE WHEN (status = 'RUNNING') THEN reserved_until END, CASE WHEN (status = 'RUNNING') THEN id END);

CREATE UNIQUE INDEX uq_task_unique_hash ON task (unique_hash)
