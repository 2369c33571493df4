-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (EXTRACT(epoch FROM interval); statement_timestamp)
-- https://www.cockroachlabs.com/docs/stable/scalar-expressions "Scalar Expressions" (comparison of tuples)
-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
SELECT task.priority, CAST(EXTRACT(epoch
FROM task.scheduled_at - statement_timestamp()) AS FLOAT(53)) AS seconds
FROM task
WHERE task.status = 'SCHEDULED' AND (task.status, task.priority) > ('SCHEDULED', %(after)s)
ORDER BY task.priority, task.scheduled_at
LIMIT 1
