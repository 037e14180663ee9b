-- Makes a dead letter wait again, in one step: with its place, its idempotency key, and no earlier runs.
--
-- Returns  0 if it is not a dead letter; else 1, or the number of its next message
if not redis.call('ZSCORE', prefix .. 'failed', id) then return 0 end
redis.call('DEL', flag)
uncount_kept('failed', id)
-- The key may belong to a newer job by now, which keeps it.
if job.record then redis.call('SET', record, says, 'NX', 'PX', job.openMs) end
hold_place()
redis.call('HDEL', key, 'sluice:starts', 'stc')
redis.call('HSET', key, 'sluice:began', 1)
return requeue()
