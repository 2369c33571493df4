-- https://learn.microsoft.com/sql/t-sql/statements/create-table-transact-sql "CREATE TABLE" (a PRIMARY KEY is clustered where nothing else is said: ids are in the order of time, so rows are added at the end)
-- https://learn.microsoft.com/sql/relational-databases/indexes/create-filtered-indexes "Create filtered indexes" (=, IN and IS NOT NULL over constants; required SET options)
-- https://learn.microsoft.com/sql/t-sql/data-types/data-type-precedence-transact-sql "Data type precedence" (nvarchar before varchar: N'...' converts a varchar column, and not the other way round)
-- https://learn.microsoft.com/sql/t-sql/data-types/binary-and-varbinary-transact-sql "binary and varbinary" (compared byte by byte)
-- https://learn.microsoft.com/sql/t-sql/data-types/datetime2-transact-sql "datetime2" (ISO 8601 text with up to 7 digits, whatever the language of the session)
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- A unique index takes one NULL only: hence its filter.
CREATE TABLE task ( id BINARY(16) NOT NULL, name NVARCHAR(120) NOT NULL,
    queue NVARCHAR(64) NOT NULL DEFAULT 'default', priority SMALLINT NOT NULL DEFAULT 0,
    status VARCHAR(9) NOT NULL DEFAULT 'NEW', scheduled_at DATETIME2(6) NOT NULL DEFAULT (sysutcdatetime()),
    ready_at DATETIME2(6) NOT NULL DEFAULT (sysutcdatetime()), body NVARCHAR(max) NOT NULL,
    headers NVARCHAR(max) NULL, attempt INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 10,
    crashes INTEGER NOT NULL DEFAULT 0, epoch BIGINT NOT NULL DEFAULT 0, reserved_until DATETIME2(6) NULL,
    reserved_by NVARCHAR(200) NULL, unique_key NVARCHAR(1024) NULL, unique_hash BINARY(32) NULL,
    unique_until NVARCHAR(5) NULL, error NVARCHAR(max) NULL, errors NVARCHAR(max) NULL, result NVARCHAR(max) NULL,
    created_at DATETIME2(6) NOT NULL DEFAULT (sysutcdatetime()), finished_at DATETIME2(6) NULL, PRIMARY KEY (id) );

CREATE INDEX ix_task_claim ON task (queue, status, priority, ready_at, id)
WHERE status = 'NEW';

CREATE INDEX ix_task_promote ON task (status, priority, scheduled_at, id)
WHERE status = 'SCHEDULED';

CREATE INDEX ix_task_prune ON task (status, finished_at, id)
WHERE status IN ('CANCELLED', 'COMPLETED', 'FAILED');

CREATE INDEX ix_task_take_over ON task (status, reserved_until, id)
WHERE status = 'RUNNING';

CREATE UNIQUE INDEX uq_task_unique_hash ON task (unique_hash)
WHERE unique_hash IS NOT NULL
