-- Ends a job that waits, and only then: nothing is taken from a worker, and nothing that has ended changes.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  flow    KEYS[4]  expiries    KEYS[5]  record of the idempotency key
-- KEYS[6]  BullMQ's key of the job    KEYS[7]  its lists and sets of jobs that wait: delayed    KEYS[8]  prioritized    KEYS[9]  wait
-- KEYS[10] paused    KEYS[11] BullMQ's events    KEYS[12] record of what ended while it waited    KEYS[13] flag of a job that is to stop
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  job id    ARGV[4]  now, ms    ARGV[5]  ms that the outcome is kept
-- ARGV[6]  how: 'cancelled'; 'expired', one that has begun does not; or 'withdrawn', as if it had never been
-- ARGV[7]  what is told of the job from now on    ARGV[8]  ms that the flag is kept: until a worker has seen it
-- Returns  'ended', 'running' (a cancelled one is flagged), 'finished' or 'unknown'
local job, id, how = KEYS[6], ARGV[3], ARGV[6]
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
  if how == 'cancelled' then redis.call('SET', KEYS[13], '1', 'PX', ARGV[8]) end
  return 'running'
end

redis.call('DEL', job, job .. ':logs')
redis.call('XADD', KEYS[11], 'MAXLEN', '~', 10000, '*', 'event', 'removed', 'jobId', id, 'prev', 'wait')
give_back(KEYS[1], KEYS[2], KEYS[4], ARGV[1], ARGV[2])
if how ~= 'withdrawn' then
  count_flow(KEYS[3], 'o', tonumber(ARGV[4]))
  redis.call('SET', KEYS[12], ARGV[7], 'PX', ARGV[5])
  end_record(KEYS[5], id, ARGV[5])
end
return 'ended'
