-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/data-types/datetime2-transact-sql "datetime2" (ISO 8601 text with up to 7 digits, whatever the language of the session)
-- https://learn.microsoft.com/sql/t-sql/language-elements/save-transaction-transact-sql "SAVE TRANSACTION" (only within a transaction)
SELECT task.id, task.name, task.unique_key, task.status
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.id IN (%(id_1_1)s)
ORDER BY task.id;

UPDATE task
SET status=%(status)s, scheduled_at=sysutcdatetime(), ready_at=sysutcdatetime(), attempt=%(attempt)s,
    crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s), finished_at=CAST(%(finished_at)s AS DATETIME2(6))
WHERE task.id IN (%(id_1_1)s) AND task.status IN (%(status_1_1)s, %(status_1_2)s);

SELECT task.id, task.name, task.unique_key, task.status
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.id IN (%(id_1_1)s, %(id_1_2)s)
ORDER BY task.id;

IF @@TRANCOUNT = 0 BEGIN TRANSACTION;

SAVE TRANSACTION sa_savepoint_1;

UPDATE task
SET status=%(status)s, scheduled_at=sysutcdatetime(), ready_at=sysutcdatetime(), attempt=%(attempt)s,
    crashes=%(crashes)s, epoch=(task.epoch + %(epoch_1)s), unique_hash=%(unique_hash)s, finished_at=CAST(%(finished_at)s AS DATETIME2(6))
WHERE task.id = %(id_1)s AND task.status IN (%(status_1_1)s, %(status_1_2)s)
