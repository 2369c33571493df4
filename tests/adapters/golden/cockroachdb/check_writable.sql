-- https://www.cockroachlabs.com/docs/stable/update
UPDATE task
SET epoch=task.epoch
WHERE task.id = %(id_1)s::UUID
