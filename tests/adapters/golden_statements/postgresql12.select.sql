-- https://www.postgresql.org/docs/12/functions-binarystring.html (overlay, set_bit, encode)
-- https://www.postgresql.org/docs/12/functions-uuid.html (no generator of its own)
INSERT INTO task (id, name, body)
SELECT
    CAST(encode(set_bit(set_bit(
        overlay(uuid_send(CAST(
            overlay(overlay(
                md5(CAST(random() AS text) || CAST(random() AS text) || CAST(clock_timestamp() AS text))
            PLACING '4' FROM 13) PLACING '8' FROM 17) AS uuid)) PLACING
            substring(int8send(CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)) FROM 3)
            FROM 1 FOR 6),
        52, 1), 53, 1), 'hex') AS uuid),
    %(task_name)s AS anon_1,
    jsonb_build_object(
        CAST(%(param_1)s AS TEXT), orders.id,
        CAST(%(param_2)s AS TEXT), CAST(orders.status AS TEXT),
        CAST(%(param_3)s AS TEXT), CAST(%(param_4)s AS JSONB)
    ) AS jsonb_build_object_1
FROM orders
