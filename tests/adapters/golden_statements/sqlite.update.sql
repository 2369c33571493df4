-- https://www.sqlite.org/lang_createtable.html (CREATE TABLE ... AS SELECT)
-- https://www.sqlite.org/lang_with.html (no UPDATE inside)
DROP TABLE IF EXISTS temp.sa_taskqueue_keys;

CREATE TEMP TABLE sa_taskqueue_keys AS SELECT orders.id AS key_0 FROM orders WHERE 1 = 0;

INSERT INTO sa_taskqueue_keys (key_0) SELECT orders.id FROM orders WHERE orders.status = ?;

SAVEPOINT sa_savepoint_1;

UPDATE orders SET status=? WHERE orders.id IN (SELECT sa_taskqueue_keys.key_0 FROM sa_taskqueue_keys);

-- NEW_ID stands for the expression that test_golden_statements.py looks at apart.
INSERT INTO task (id, name, body)
SELECT
    NEW_ID,
    ? AS anon_1,
    (((? || CAST(CAST(orders.id AS INTEGER) AS TEXT)) || ?) || coalesce(
        CASE WHEN (orders.status IS NOT NULL) THEN json_quote(CAST(orders.status AS TEXT)) END, 'null')) || ? AS anon_2
FROM orders, sa_taskqueue_keys WHERE orders.id = sa_taskqueue_keys.key_0;

RELEASE SAVEPOINT sa_savepoint_1
