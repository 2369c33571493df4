-- https://www.cockroachlabs.com/docs/stable/delete "DELETE"
-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
-- https://www.cockroachlabs.com/docs/stable/savepoint "SAVEPOINT" (nested transactions; RELEASE, ROLLBACK TO)
SELECT task.finished_at, task.id
FROM task
WHERE task.status = 'COMPLETED' AND task.finished_at < statement_timestamp() - %(param_1)s * INTERVAL '1 second'
ORDER BY task.finished_at, task.id
LIMIT %(param_2)s;

SAVEPOINT sa_savepoint_1;

DELETE
FROM task
WHERE task.status = 'COMPLETED' AND task.id IN (%(id_1_1)s::UUID);

ROLLBACK TO SAVEPOINT sa_savepoint_1;

SELECT task.finished_at, task.id
FROM task
WHERE task.status = 'COMPLETED'
    AND task.finished_at < statement_timestamp() - %(param_1)s * INTERVAL '1 second'
    AND task.finished_at >= %(finished_at_1)s AND (task.finished_at > %(finished_at_2)s OR task.id > %(id_1)s::UUID)
ORDER BY task.finished_at, task.id
LIMIT %(param_2)s;

SAVEPOINT sa_savepoint_2;

RELEASE SAVEPOINT sa_savepoint_2
