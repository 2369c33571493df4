-- https://www.cockroachlabs.com/docs/stable/select-clause "Simple SELECT Clause" (GROUP BY)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
SELECT task.queue, task.status, count(*) AS count_1, min(task.ready_at) AS min_1, min(task.reserved_until) AS min_2
FROM task
GROUP BY task.queue, task.status
ORDER BY task.queue;

SELECT clock_timestamp() AS clock_timestamp_1
