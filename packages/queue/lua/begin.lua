-- Counts a run that begins, in a field of the job. A job that has begun does not expire.
--
-- Returns  1 if there is the job, and the run still has it
if redis.call('EXISTS', key) == 0 or owner_of(id) ~= args.token then return 0 end
redis.call('HINCRBY', key, 'sluice:starts', 1)
redis.call('HSET', key, 'sluice:began', 1)
redis.call('ZREM', expiries, place)
return 1
