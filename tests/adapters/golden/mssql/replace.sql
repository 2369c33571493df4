-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql "INSERT"
-- https://learn.microsoft.com/sql/t-sql/language-elements/save-transaction-transact-sql "SAVE TRANSACTION" (only within a transaction)
-- https://learn.microsoft.com/sql/t-sql/language-elements/rollback-transaction-transact-sql "ROLLBACK TRANSACTION" (savepoint_name; there is no release)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;

SAVE TRANSACTION sa_savepoint_1;

INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (%(id)s, %(name)s, %(queue)s, %(priority)s, %(status)s, %(body)s, %(headers)s, %(max_attempts)s,
    %(unique_key)s, %(unique_hash)s, %(unique_until)s);

ROLLBACK TRANSACTION sa_savepoint_1;

UPDATE task
SET queue=%(queue)s, priority=%(priority)s, status=%(status)s, scheduled_at=sysutcdatetime(),
    ready_at=sysutcdatetime(), body=%(body)s, headers=%(headers)s, attempt=%(attempt)s,
    max_attempts=%(max_attempts)s, crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s),
    unique_until=%(unique_until)s, error=%(error)s, errors=%(errors)s
WHERE task.unique_hash = %(taken_hash)s AND task.status IN (%(status_1_1)s, %(status_1_2)s);

SELECT task.id, task.status
FROM task
WHERE task.unique_hash = %(unique_hash_1)s
