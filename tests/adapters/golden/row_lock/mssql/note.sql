-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql
INSERT INTO task_crash_note (task_id, attempt, [by]) VALUES (%(task_id)s, %(attempt)s, %(by)s)
