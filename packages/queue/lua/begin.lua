-- Counts the start of a run in a field of the job. A started job does not expire.
--
-- Returns  1 if the job exists and the run still has it
if redis.call('EXISTS', key) == 0 or owner_of(id) ~= args.token then return 0 end
redis.call('HINCRBY', key, 'sluice:starts', 1)
redis.call('HSET', key, 'sluice:began', 1)
redis.call('ZREM', expiries, place)
return 1
