-- https://www.cockroachlabs.com/docs/stable/insert "INSERT"
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
SELECT clock_timestamp() AS clock_timestamp_1;

INSERT INTO task (id, name, queue, priority, status, scheduled_at, body, headers, max_attempts)
VALUES (%(id)s::UUID, %(name)s, %(queue)s, %(priority)s, %(status)s, %(scheduled_at)s, CAST(%(body)s AS JSONB),
    CAST(%(headers)s AS JSONB), %(max_attempts)s)
