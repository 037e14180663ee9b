-- Ends a job that waits, and only then: nothing is taken from a worker, and nothing that has ended changes. It stands among BullMQ's completed
-- jobs from then on, like those that a worker ends so.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  flow    KEYS[4]  expiries    KEYS[5]  record of the idempotency key
-- KEYS[6]  BullMQ's key of the job    KEYS[7]  its jobs that wait: delayed    KEYS[8]  prioritized    KEYS[9]  wait    KEYS[10] paused
-- KEYS[11] BullMQ's completed set     KEYS[12] flag of a job that is to stop
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  job id    ARGV[4]  now, ms    ARGV[5]  ms that the record counts from now on
-- ARGV[6]  how: 'cancelled'; 'expired', one that has begun does not; or 'withdrawn', as if it had never been
-- ARGV[7]  what the job came to, as BullMQ keeps it    ARGV[8]  ms that the flag is kept: until a worker has seen it
-- Returns  'ended', 'running' (a cancelled one is flagged), 'finished' or 'unknown'
local job, id, how, completed = KEYS[6], ARGV[3], ARGV[6], KEYS[11]
if redis.call('EXISTS', job) == 0 then return 'unknown' end
if redis.call('HEXISTS', job, 'finishedOn') == 1 then return 'finished' end
if how == 'expired' then
  redis.call('ZREM', KEYS[4], ARGV[1])
  if redis.call('HEXISTS', job, 'sluice:began') == 1 then return 'running' end
end

local waits = redis.call('ZREM', KEYS[7], id) + redis.call('ZREM', KEYS[8], id)
-- The oldest jobs are at the end.
if waits == 0 then waits = redis.call('LREM', KEYS[9], -1, id) end
if waits == 0 then waits = redis.call('LREM', KEYS[10], -1, id) end
if waits == 0 then
  if how == 'cancelled' then redis.call('SET', KEYS[12], '1', 'PX', ARGV[8]) end
  return 'running'
end

give_back(KEYS[1], KEYS[2], KEYS[4], ARGV[1], ARGV[2])
if how == 'withdrawn' then
  redis.call('DEL', job, job .. ':logs')
  return 'ended'
end
count_flow(KEYS[3], 'o', tonumber(ARGV[4]))
end_record(KEYS[5], id, ARGV[5])
redis.call('HSET', job, 'returnvalue', ARGV[7], 'finishedOn', ARGV[4])
-- As BullMQ counts what a worker ends.
redis.call('HINCRBY', job, 'atm', 1)
redis.call('ZADD', completed, ARGV[4], id)
return 'ended'
