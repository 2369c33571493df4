-- https://www.cockroachlabs.com/docs/stable/insert "INSERT" (ON CONFLICT DO NOTHING, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (%(id)s::UUID, %(name)s, %(queue)s, %(priority)s, %(status)s, CAST(%(body)s AS JSONB),
    CAST(%(headers)s AS JSONB), %(max_attempts)s, %(unique_key)s, %(unique_hash)s, %(unique_until)s)
ON CONFLICT (unique_hash) DO NOTHING
RETURNING task.id;

UPDATE task
SET queue=%(queue)s, priority=%(priority)s, status=%(status)s, scheduled_at=clock_timestamp(),
    ready_at=clock_timestamp(), body=CAST(%(body)s AS JSONB), headers=CAST(%(headers)s AS JSONB),
    attempt=%(attempt)s, max_attempts=%(max_attempts)s, crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s),
    unique_until=%(unique_until)s, error=CAST(%(error)s AS JSONB), errors=CAST(%(errors)s AS JSONB)
WHERE task.unique_hash = %(taken_hash)s AND task.status IN (%(status_1_1)s, %(status_1_2)s);

SELECT task.id, task.status
FROM task
WHERE task.unique_hash = %(unique_hash_1)s
