-- Ends a job that waits, or that the run of a token has, and counts what is kept of it.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  flow    KEYS[4]  expiries    KEYS[5]  record of the idempotency key
-- KEYS[6]  flag of a job that is to stop    KEYS[7]  running jobs
-- KEYS[8]  key of the job    KEYS[9]  completed or failed jobs    KEYS[10] ids of what is kept    KEYS[11] its bytes
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  job id    ARGV[4]  now, ms    ARGV[5]  ms that the record counts from now on
-- ARGV[6]  how: 'run'; 'cancelled'; 'expired', one that has begun does not; or 'withdrawn', as if it had never been
-- ARGV[7]  token of the run    ARGV[8]  'returnvalue' or 'failedReason'    ARGV[9]  its text
-- ARGV[10] ms that the flag is kept: until a worker has seen it    ARGV[11] and on: the arguments of keep.lua
-- Returns  'ended', 'running' (a cancelled one is flagged), 'finished' or 'unknown'
local key, id, now, how, token = KEYS[8], ARGV[3], ARGV[4], ARGV[6], ARGV[7]
local finished, owner, began, ended_by = unpack(redis.call('HMGET', key, 'finishedOn', 'token', 'sluice:began', 'endedBy'))
if redis.call('EXISTS', key) == 0 then return 'unknown' end
if finished then
  -- The answer to the first call may have been lost.
  return how == 'run' and ended_by == token and 'ended' or 'finished'
end
if how == 'expired' then
  redis.call('ZREM', KEYS[4], ARGV[1])
  if began then return 'running' end
end
if how == 'run' and owner ~= token then return 'running' end
if how ~= 'run' and owner then
  if how == 'cancelled' then redis.call('SET', KEYS[6], '1', 'PX', ARGV[10]) end
  return 'running'
end

give_back(KEYS[1], KEYS[2], KEYS[4], ARGV[1], ARGV[2])
redis.call('SREM', KEYS[7], id)
redis.call('DEL', KEYS[6])
if how == 'withdrawn' then
  redis.call('DEL', key)
  return 'ended'
end
count_flow(KEYS[3], 'o', tonumber(now))
end_record(KEYS[5], id, ARGV[5])
redis.call('HDEL', key, 'token')
redis.call('HSET', key, ARGV[8], ARGV[9], 'finishedOn', now, 'endedBy', token)
redis.call('HINCRBY', key, 'atm', 1)
redis.call('ZADD', KEYS[9], now, id)
local rest = {}
for i = 11, #ARGV do rest[#rest + 1] = ARGV[i] end
keep({ KEYS[8], KEYS[9], KEYS[10], KEYS[11] }, rest)
-- Records that are kept for a time end with all their keys at once.
local kept_ms = redis.call('PTTL', KEYS[10])
if kept_ms > 0 then redis.call('PEXPIRE', KEYS[9], kept_ms) end
return 'ended'
