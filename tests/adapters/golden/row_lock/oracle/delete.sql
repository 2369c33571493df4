-- https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/DELETE.html
DELETE FROM task
WHERE task.id = :old_id AND task.epoch = :old_epoch AND task.status = 'NEW'
