-- Deletes a dead letter and its idempotency record.
--
-- Returns  1 if it was a dead letter
if redis.call('ZREM', prefix .. 'failed', id) == 0 then return 0 end
uncount_kept('failed', id)
redis.call('DEL', key, key .. ':logs')
-- The key may belong to a newer job by now, which keeps it.
if job.record and redis.call('GET', record) == says then redis.call('DEL', record) end
return 1
