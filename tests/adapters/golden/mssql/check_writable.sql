-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
UPDATE task
SET epoch=task.epoch
WHERE task.id = %(id_1)s
