-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql
UPDATE task
SET epoch=task.epoch
WHERE task.id = %(id_1)s
