-- Has a job keep, or take back, its place as it begins to run: a worker may have died between giving the place back and ending the job.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  mark of the job if it is cancelled
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  when it was enqueued, ms
-- Returns  1 if the job is cancelled
if redis.call('ZADD', KEYS[1], 'NX', ARGV[3], ARGV[1]) == 1 then redis.call('HINCRBY', KEYS[2], ARGV[2], 1) end
return redis.call('EXISTS', KEYS[3])
