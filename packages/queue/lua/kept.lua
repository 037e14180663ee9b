-- Counts the records of jobs that have ended: a sorted set of their ids, the first to go first, and
-- a hash of their bytes, with the sum of them under ''.
local function uncount_kept(kept, bytes, id)
  redis.call('ZREM', kept, id)
  local size = redis.call('HGET', bytes, id)
  if not size then return end
  redis.call('HDEL', bytes, id)
  redis.call('HINCRBY', bytes, '', -size)
end

-- Counts what is kept of a job that has ended, drops what nobody needs any more, and forgets what is too old, or too much. Its keys and
-- arguments are those of keep.lua.
local function keep(keys, args)
  local job, ended, kept, bytes = keys[1], keys[2], keys[3], keys[4]
  local id, now, kept_ms, data = args[1], tonumber(args[2]), args[3], args[4]
  local max_count, max_bytes, prefix = tonumber(args[5]), tonumber(args[6]), args[8]
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
    local size = tonumber(args[7])
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
end
