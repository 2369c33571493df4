-- https://learn.microsoft.com/sql/t-sql/statements/delete-transact-sql
DELETE FROM task
WHERE task.id = %(old_id)s AND task.epoch = %(old_epoch)s AND task.status = 'NEW'
