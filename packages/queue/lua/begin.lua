-- Counts a run that begins (1), or that was given back as if it had not (-1). It is counted in a field of the job, and goes
-- with it. A job that has begun does not expire.
--
-- KEYS[1]  key of the job    KEYS[2]  expiries
-- ARGV[1]  place    ARGV[2]  1 or -1    ARGV[3]  token of the run, or '' where the broker marks no job by it
-- Returns  1 if there is the job, and the run still has it
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[3] ~= '' and redis.call('HGET', KEYS[1], 'token') ~= ARGV[3] then return 0 end
redis.call('HINCRBY', KEYS[1], 'sluice:starts', ARGV[2])
redis.call('HSET', KEYS[1], 'sluice:began', 1)
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
