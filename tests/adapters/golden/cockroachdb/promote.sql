-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators"
-- https://www.cockroachlabs.com/docs/stable/selection-queries "Selection Queries"
-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING)
SELECT task.priority, CAST(EXTRACT(epoch
FROM task.scheduled_at - statement_timestamp()) AS FLOAT(53)) AS seconds
FROM task
WHERE task.status = 'SCHEDULED' AND (task.status, task.priority) > ('SCHEDULED', %(after)s)
ORDER BY task.priority, task.scheduled_at
LIMIT 1;

UPDATE task
SET status='NEW', ready_at=clock_timestamp()
WHERE task.id IN (SELECT task.id
FROM task
WHERE task.status = 'SCHEDULED' AND task.priority = %(of_priority)s AND task.scheduled_at <= statement_timestamp()
ORDER BY task.scheduled_at, task.id
LIMIT %(at_most)s) AND task.status = 'SCHEDULED' AND task.priority = %(of_priority)s
    AND task.scheduled_at <= statement_timestamp()
RETURNING task.id AS id
