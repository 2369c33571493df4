-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html
UPDATE task
SET status='RUNNING', attempt=(task.attempt + 1), epoch=(task.epoch + 1)
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'NEW'
