-- Takes a job for a run, as a message of it is delivered.
--
-- KEYS[1]  key of the job    KEYS[2]  running jobs    KEYS[3]  jobs that are to be delivered    KEYS[4]  flag of a job that is to stop
-- ARGV[1]  job id    ARGV[2]  number of the delivery    ARGV[3]  token of the run    ARGV[4]  now, ms
-- Returns  { 'run', data, runs that ended, runs that began and never ended, 1 if any began, 1 if it is to stop, 1 if another run had it },
--          { 'early', number of the next delivery, ms until it is due }, or { 'stale' } for a message that stands for nothing any more
local key, id, token, now = KEYS[1], ARGV[1], ARGV[3], tonumber(ARGV[4])
local fields = { 'data', 'delivery', 'finishedOn', 'dueAt', 'token', 'atm', 'sluice:starts', 'sluice:began' }
local data, delivery, finished, due, before, ended, starts, began = unpack(redis.call('HMGET', key, unpack(fields)))
if not data or finished or delivery ~= ARGV[2] then return { 'stale' } end
redis.call('ZREM', KEYS[3], id .. ':' .. delivery)

local early = tonumber(due or '0') - now
if early > 0 then return { 'early', deliver_again(key, KEYS[3], id, now), early } end

redis.call('HSET', key, 'token', token)
redis.call('SADD', KEYS[2], id)
local interrupted = math.max(0, tonumber(starts or '0') - tonumber(ended or '0'))
local was_running = before and before ~= token
return { 'run', data, tonumber(ended or '0'), interrupted, began and 1 or 0, redis.call('EXISTS', KEYS[4]), was_running and 1 or 0 }
