-- https://www.sqlite.org/lang_returning.html, /lang_datefunc.html. There is one writer: nothing to lock.
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1),
    reserved_until=strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('%+.3f seconds', ?)), reserved_by=?,
    unique_hash=CASE WHEN (task.unique_until = 'start') THEN NULL ELSE task.unique_hash END
WHERE task.id IN (
    SELECT task.id
    FROM task
    WHERE task.queue = ? AND task.status = 'NEW'
    ORDER BY task.priority, task.ready_at, task.id
    LIMIT ? OFFSET ?
)
RETURNING id AS id, name, queue, priority, body, headers, attempt, max_attempts, crashes, epoch, errors, error,
    scheduled_at AS scheduled_at, created_at AS created_at, ready_at AS ready_at
