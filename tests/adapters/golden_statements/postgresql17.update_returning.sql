-- https://www.postgresql.org/docs/17/queries-with.html#QUERIES-WITH-MODIFYING
-- https://www.postgresql.org/docs/17/functions-binarystring.html (overlay, set_bit, encode)
-- gen_random_uuid() is of version 4 (0100): bits 52 and 53 make it 7 (0111). The variant is right already.
WITH sa_taskqueue_changed AS (
    UPDATE orders SET status=%(param_1)s WHERE orders.status = %(status_1)s
    RETURNING orders.id, jsonb_build_object(
        CAST(%(param_2)s AS TEXT), orders.id,
        CAST(%(param_3)s AS TEXT), CAST(orders.status AS TEXT),
        CAST(%(param_4)s AS TEXT), CAST(%(param_5)s AS JSONB)
    ) AS sa_taskqueue_body
),
sa_taskqueue_queued AS (
    INSERT INTO task (id, name, body)
    SELECT
        CAST(encode(set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid()) PLACING
                substring(int8send(CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)) FROM 3)
                FROM 1 FOR 6),
            52, 1), 53, 1), 'hex') AS uuid),
        %(task_name)s AS anon_1,
        sa_taskqueue_changed.sa_taskqueue_body AS sa_taskqueue_body
    FROM sa_taskqueue_changed
)
SELECT sa_taskqueue_changed.id FROM sa_taskqueue_changed
