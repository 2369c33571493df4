-- https://www.postgresql.org/docs/current/functions-datetime.html#FUNCTIONS-DATETIME-CURRENT "Current Date/Time"; https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE "The Locking Clause"
-- statement_timestamp() is stable, so that the index serves the range; clock_timestamp() is not.
WITH picked AS MATERIALIZED (
    SELECT task.id AS id
    FROM task
    WHERE task.status = 'SCHEDULED' AND task.priority = %(of_priority)s::INTEGER
        AND task.scheduled_at <= statement_timestamp()
    ORDER BY task.scheduled_at, task.id
    LIMIT %(at_most)s::INTEGER
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE task SET status='NEW', ready_at=clock_timestamp() FROM picked WHERE task.id = picked.id RETURNING task.id AS id
