-- https://www.cockroachlabs.com/docs/stable/update "UPDATE"
UPDATE task
SET epoch=task.epoch
WHERE task.id = %(id_1)s::UUID
