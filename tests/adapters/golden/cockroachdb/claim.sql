-- https://www.cockroachlabs.com/docs/stable/update "UPDATE" (RETURNING; the subquery's ORDER BY and LIMIT; the rows it scans are locked as by FOR UPDATE)
-- https://www.cockroachlabs.com/docs/stable/limit-offset "Limit Query Results" (with ORDER BY)
-- https://www.cockroachlabs.com/docs/stable/interval "INTERVAL" (a number times an interval)
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
-- https://www.cockroachlabs.com/docs/stable/transaction-retry-error-reference "Transaction Retry Error Reference" (40001: run the transaction again)
-- The conditions again after the pick: the row may have changed in between. No SKIP LOCKED.
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=(clock_timestamp() + %(lease)s * INTERVAL '1 second'), reserved_by=%(holder)s,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id IN (SELECT task.id
FROM task
WHERE task.queue = %(of_queue)s AND task.status = 'NEW'
ORDER BY task.priority, task.ready_at, task.id
LIMIT %(at_most)s) AND task.queue = %(of_queue)s AND task.status = 'NEW'
RETURNING task.id AS id, task.name, task.queue, task.priority, CAST(task.body AS TEXT) AS body,
    CAST(task.headers AS TEXT) AS headers, task.attempt, task.max_attempts, task.crashes, task.epoch,
    CAST(task.errors AS TEXT) AS errors, CAST(task.error AS TEXT) AS error, task.scheduled_at AS scheduled_at,
    task.created_at AS created_at, task.ready_at AS ready_at
