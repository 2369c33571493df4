-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING; the subquery's ORDER BY and LIMIT; the rows it scans are locked as by FOR UPDATE)
-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
-- https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference "Transaction Retry Error Reference" (40001: run the transaction again)
UPDATE task
SET status=CASE WHEN (task.crashes + 1 >= %(max_crashes)s OR task.attempt >= task.max_attempts) THEN 'FAILED' ELSE
    'NEW' END, ready_at=CASE WHEN (task.crashes + 1 >= %(max_crashes)s OR task.attempt >= task.max_attempts) THEN
    task.ready_at ELSE clock_timestamp() END,
    finished_at=CASE WHEN (task.crashes + 1 >= %(max_crashes)s OR task.attempt >= task.max_attempts) THEN
    clock_timestamp() ELSE NULL END,
    error=CASE WHEN (task.crashes + 1 >= %(max_crashes)s OR task.attempt >= task.max_attempts) THEN CAST(%(param_1)s
    AS JSONB) ELSE task.error END,
    unique_hash=CASE WHEN (task.crashes + 1 >= %(max_crashes)s OR task.attempt >= task.max_attempts) THEN NULL ELSE
    task.unique_hash END, crashes=(task.crashes + 1), epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL
WHERE task.id IN (SELECT task.id
FROM task
WHERE task.status = 'RUNNING' AND task.reserved_until < statement_timestamp()
ORDER BY task.reserved_until, task.id
LIMIT %(at_most)s) AND task.status = 'RUNNING' AND task.reserved_until < statement_timestamp()
RETURNING task.id AS id, task.status
