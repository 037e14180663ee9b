-- Counts a run that begins (1), or that was given back as if it had not (-1). It is counted beside BullMQ's own fields of the job, and goes
-- with it. A job that has begun does not expire.
--
-- KEYS[1]  BullMQ's key of the job    KEYS[2]  expiries
-- ARGV[1]  place    ARGV[2]  1 or -1
-- Returns  1 if there is the job
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'sluice:starts', ARGV[2])
redis.call('HSET', KEYS[1], 'sluice:began', 1)
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
