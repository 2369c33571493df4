-- https://www.postgresql.org/docs/18/queries-with.html#QUERIES-WITH-MODIFYING
-- https://www.postgresql.org/docs/18/functions-uuid.html
WITH sa_taskqueue_changed AS (
    UPDATE orders SET status=%(param_1)s WHERE orders.status = %(status_1)s
    RETURNING jsonb_build_object(
        CAST(%(param_2)s AS TEXT), orders.id,
        CAST(%(param_3)s AS TEXT), CAST(orders.status AS TEXT),
        CAST(%(param_4)s AS TEXT), CAST(%(param_5)s AS JSONB)
    ) AS sa_taskqueue_body
)
INSERT INTO task (id, name, body)
SELECT uuidv7() AS uuidv7_1, %(task_name)s AS anon_1, sa_taskqueue_changed.sa_taskqueue_body
FROM sa_taskqueue_changed
