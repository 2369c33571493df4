-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
UPDATE task
SET status='FAILED', epoch=(task.epoch + 1), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL,
    error=CAST(%(new_error)s AS JSONB), finished_at=clock_timestamp()
WHERE task.id = %(raw_id)s::UUID
