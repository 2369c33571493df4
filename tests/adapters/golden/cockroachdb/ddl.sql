-- https://www.cockroachlabs.com/docs/stable/create-table "CREATE TABLE"
-- https://www.cockroachlabs.com/docs/stable/data-types "Data Types" (UUID, BYTES (BYTEA), JSONB, TIMESTAMPTZ with microseconds; INTEGER is INT8)
-- https://www.cockroachlabs.com/docs/stable/partial-indexes "Partial Indexes" (used where the condition of the query implies that of the index)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
CREATE TABLE task ( id UUID NOT NULL, name VARCHAR(120) NOT NULL, queue VARCHAR(64) DEFAULT 'default' NOT NULL,
    priority SMALLINT DEFAULT 0 NOT NULL, status VARCHAR(9) DEFAULT 'NEW' NOT NULL,
    scheduled_at TIMESTAMP WITH TIME ZONE DEFAULT (clock_timestamp()) NOT NULL,
    ready_at TIMESTAMP WITH TIME ZONE DEFAULT (clock_timestamp()) NOT NULL, body JSONB NOT NULL, headers JSONB,
    attempt INTEGER DEFAULT 0 NOT NULL, max_attempts INTEGER DEFAULT 10 NOT NULL,
    crashes INTEGER DEFAULT 0 NOT NULL, epoch BIGINT DEFAULT 0 NOT NULL, reserved_until TIMESTAMP WITH TIME ZONE,
    reserved_by VARCHAR(200), unique_key VARCHAR(1024), unique_hash BYTEA, unique_until VARCHAR(5), error JSONB,
    errors JSONB, result JSONB, created_at TIMESTAMP WITH TIME ZONE DEFAULT (clock_timestamp()) NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id) );

CREATE INDEX ix_task_claim ON task (queue, status, priority, ready_at, id)
WHERE status = 'NEW';

CREATE INDEX ix_task_promote ON task (status, priority, scheduled_at, id)
WHERE status = 'SCHEDULED';

CREATE INDEX ix_task_prune ON task (status, finished_at, id)
WHERE status IN ('CANCELLED', 'COMPLETED', 'FAILED');

CREATE INDEX ix_task_take_over ON task (status, reserved_until, id)
WHERE status = 'RUNNING';

CREATE UNIQUE INDEX uq_task_unique_hash ON task (unique_hash)
