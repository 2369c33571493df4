-- https://www.cockroachlabs.com/docs/stable/insert "INSERT" (ON CONFLICT DO NOTHING, RETURNING)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (%(id)s::UUID, %(name)s, %(queue)s, %(priority)s, %(status)s, CAST(%(body)s AS JSONB),
    CAST(%(headers)s AS JSONB), %(max_attempts)s, %(unique_key)s, %(unique_hash)s, %(unique_until)s)
ON CONFLICT (unique_hash) DO NOTHING
RETURNING task.id;

SELECT task.id, task.status
FROM task
WHERE task.unique_hash = %(unique_hash_1)s
