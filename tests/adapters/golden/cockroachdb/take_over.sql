-- https://www.cockroachlabs.com/docs/stable/selection-queries "Selection Queries"
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING)
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
