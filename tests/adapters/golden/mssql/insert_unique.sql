-- https://learn.microsoft.com/sql/t-sql/statements/insert-transact-sql "INSERT"
-- https://learn.microsoft.com/sql/t-sql/language-elements/save-transaction-transact-sql "SAVE TRANSACTION" (only within a transaction)
-- https://learn.microsoft.com/sql/t-sql/language-elements/rollback-transaction-transact-sql "ROLLBACK TRANSACTION" (savepoint_name; there is no release)
-- Errors 2601 and 2627 do not end the transaction (XACT_ABORT is off).
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;

SAVE TRANSACTION sa_savepoint_1;

INSERT INTO task (id, name, queue, priority, status, body, headers, max_attempts, unique_key, unique_hash,
    unique_until)
VALUES (%(id)s, %(name)s, %(queue)s, %(priority)s, %(status)s, %(body)s, %(headers)s, %(max_attempts)s,
    %(unique_key)s, %(unique_hash)s, %(unique_until)s)
