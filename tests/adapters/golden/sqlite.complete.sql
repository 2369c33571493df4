-- https://www.sqlite.org/lang_returning.html "RETURNING"; https://www.sqlite.org/lang_datefunc.html "Date And Time Functions"
UPDATE task
SET status='COMPLETED', finished_at=strftime('%Y-%m-%d %H:%M:%f000', 'now'), reserved_until=NULL, reserved_by=NULL, unique_hash=NULL
WHERE task.id IN (__[POSTCOMPILE_ids]) AND task.epoch = ? AND task.status = 'RUNNING'
RETURNING id
