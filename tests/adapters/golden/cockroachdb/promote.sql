-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING; the subquery's ORDER BY and LIMIT; the rows it scans are locked as by FOR UPDATE)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (EXTRACT(epoch FROM interval); statement_timestamp)
-- https://www.cockroachlabs.com/docs/stable/scalar-expressions "Scalar Expressions" (comparison of tuples)
-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference "Transaction Retry Error Reference" (40001: run the transaction again)
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
