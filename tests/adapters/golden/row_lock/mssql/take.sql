-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1)
WHERE task.id = %(old_id)s AND task.epoch = %(old_epoch)s AND task.status = 'NEW'
