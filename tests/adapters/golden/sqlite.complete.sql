SELECT task.id, task.epoch, task.status FROM task WHERE task.id IN (__[POSTCOMPILE_ids]);

UPDATE task
SET status='COMPLETED', finished_at=strftime('%Y-%m-%d %H:%M:%f000', 'now'),
    reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
WHERE task.id IN (__[POSTCOMPILE_ids])
