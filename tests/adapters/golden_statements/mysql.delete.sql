-- https://dev.mysql.com/doc/refman/9.4/en/create-temporary-table.html
-- https://dev.mysql.com/doc/refman/9.4/en/delete.html (several tables, USING)
CREATE TEMPORARY TABLE sa_taskqueue_keys (PRIMARY KEY (key_0)) AS SELECT orders.id AS key_0 FROM orders WHERE 1 = 0;

INSERT INTO sa_taskqueue_keys (key_0) SELECT orders.id FROM orders WHERE orders.status = %(status_1)s FOR UPDATE;

SAVEPOINT sa_savepoint_1;

INSERT INTO task (id, name, body)
SELECT
    unhex(concat(
        LPAD(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000), 12, '0'),
        '7', SUBSTR(HEX(RANDOM_BYTES(2)), 2, 3),
        SUBSTR('89AB', 1 + (ORD(RANDOM_BYTES(1)) & 3), 1), SUBSTR(HEX(RANDOM_BYTES(8)), 2, 15)
    )) AS unhex_1,
    %(task_name)s AS anon_1,
    concat(%(param_1)s, CAST(orders.id AS CHAR),
        %(param_2)s, coalesce(json_quote(convert(orders.status USING utf8mb4)), 'null'), %(param_3)s) AS concat_1
FROM orders, sa_taskqueue_keys WHERE orders.id = sa_taskqueue_keys.key_0;

DELETE FROM orders USING orders, sa_taskqueue_keys WHERE orders.id = sa_taskqueue_keys.key_0;

RELEASE SAVEPOINT sa_savepoint_1;

DROP TEMPORARY TABLE sa_taskqueue_keys
