-- Has a job keep, or take back, its place as a worker takes it: one may have died between giving the place back and ending the job.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  record of the idempotency key    KEYS[4]  BullMQ's key of the job
-- KEYS[5]  flag of a job that is to stop
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  when it was enqueued, ms    ARGV[4]  ms that the record is kept while the job is open
-- Returns  { 1 if it is to stop, runs that began and never ended, 1 if any began }
if redis.call('ZADD', KEYS[1], 'NX', ARGV[3], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
local job = redis.call('HMGET', KEYS[4], 'sluice:starts', 'atm', 'sluice:began')
local interrupted = math.max(0, tonumber(job[1] or '0') - tonumber(job[2] or '0'))
return { redis.call('EXISTS', KEYS[5]), interrupted, job[3] and 1 or 0 }
