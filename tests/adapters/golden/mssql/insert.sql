-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql "INSERT"
INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts)
VALUES (%(id)s, %(name)s, %(queue)s, %(priority)s, %(status)s, %(body)s, %(headers)s, %(max_attempts)s)
