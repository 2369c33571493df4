-- https://learn.microsoft.com/sql/t-sql/queries/hints-transact-sql-table "Table hints" (UPDLOCK, ROWLOCK, READPAST; READCOMMITTEDLOCK, which READPAST needs under READ_COMMITTED_SNAPSHOT)
-- https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql "UPDATE"
-- https://learn.microsoft.com/sql/t-sql/functions/sysutcdatetime-transact-sql "SYSUTCDATETIME" (datetime2(7), UTC)
-- https://learn.microsoft.com/sql/t-sql/data-types/datetime2-transact-sql "datetime2" (ISO 8601 text with up to 7 digits, whatever the language of the session)
SELECT task.id, task.name, task.unique_key, task.status
FROM task WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)
WHERE task.id IN (%(id_1_1)s)
ORDER BY task.id;

UPDATE task
SET status=%(status)s, epoch=(task.epoch + %(epoch_1)s), reserved_until=CAST(%(reserved_until)s AS DATETIME2(6)),
    reserved_by=%(reserved_by)s, unique_hash=%(unique_hash)s, finished_at=sysutcdatetime()
WHERE task.id IN (%(id_1_1)s) AND task.status IN (%(status_1_1)s, %(status_1_2)s, %(status_1_3)s)
