-- Counts what is kept of a job that has ended, drops what nobody needs any more, and forgets what is too old, or too much.
--
-- KEYS[1]  BullMQ's key of the job    KEYS[2]  BullMQ's completed or failed set    KEYS[3]  ids of what is kept    KEYS[4]  its bytes
-- ARGV[1]  job id, or '': forgets only    ARGV[2]  now, ms
-- ARGV[3]  ms that it is kept, or '' for a dead letter    ARGV[4]  what is kept of the data of the job, or '' for all of it
-- ARGV[5]  how many are kept    ARGV[6]  how many bytes    ARGV[7]  bytes that a job takes beside its texts    ARGV[8]  prefix of BullMQ's job keys
-- Returns  the sum of the bytes
local job, ended, kept, bytes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, now, kept_ms, data = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local max_count, max_bytes, prefix = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[8]
local forgotten_at_once = 1000

local function forget(old)
  uncount_kept(kept, bytes, old)
  redis.call('ZREM', ended, old)
  -- A job that is added again under its id is another one.
  if redis.call('HEXISTS', prefix .. old, 'finishedOn') == 1 then
    redis.call('DEL', prefix .. old, prefix .. old .. ':logs')
  end
end

if kept_ms ~= '' then
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', kept, '-inf', now, 'LIMIT', 0, forgotten_at_once)) do forget(old) end
end
if id ~= '' and redis.call('ZSCORE', ended, id) and redis.call('EXISTS', job) == 1 then
  uncount_kept(kept, bytes, id)
  if data ~= '' then redis.call('HSET', job, 'data', data, 'opts', '{}') end
  local size = tonumber(ARGV[7])
  for _, field in ipairs({ 'data', 'returnvalue', 'failedReason' }) do size = size + redis.call('HSTRLEN', job, field) end
  redis.call('HSET', bytes, id, size)
  redis.call('HINCRBY', bytes, '', size)
  redis.call('ZADD', kept, now + (tonumber(kept_ms) or 0), id)
  if kept_ms ~= '' then
    redis.call('PEXPIRE', job, kept_ms)
    local until_ms = math.max(tonumber(kept_ms), redis.call('PTTL', kept))
    redis.call('PEXPIRE', kept, until_ms)
    redis.call('PEXPIRE', bytes, until_ms)
  end
end

local function sum() return tonumber(redis.call('HGET', bytes, '') or '0') end
for _ = 1, forgotten_at_once do
  if redis.call('ZCARD', kept) <= max_count and sum() <= max_bytes then break end
  local oldest = redis.call('ZRANGE', kept, 0, 0)[1]
  if not oldest then break end
  forget(oldest)
end
return sum()
