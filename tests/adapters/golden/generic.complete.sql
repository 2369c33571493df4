-- https://www.iso.org/standard/76584.html "SQL/Foundation" (update statement: searched)
UPDATE task
SET status='COMPLETED', finished_at=CURRENT_TIMESTAMP, reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'RUNNING'
