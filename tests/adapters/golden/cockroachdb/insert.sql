-- https://www.cockroachlabs.com/docs/stable/insert "INSERT"
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts)
VALUES (%(id)s::UUID, %(name)s, %(queue)s, %(priority)s, %(status)s, CAST(%(body)s AS JSONB),
    CAST(%(headers)s AS JSONB), %(max_attempts)s)
