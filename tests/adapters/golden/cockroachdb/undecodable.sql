-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
-- https://www.cockroachlabs.com/docs/stable/functions-and-operators "Functions and Operators" (clock_timestamp: volatile, now; statement_timestamp: stable)
-- https://www.cockroachlabs.com/docs/stable/jsonb "JSONB" (a string cast to it, and back)
UPDATE task
SET status='FAILED', epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL,
    error=CAST(%(new_error)s AS JSONB), finished_at=clock_timestamp()
WHERE task.id = %(raw_id)s::UUID
