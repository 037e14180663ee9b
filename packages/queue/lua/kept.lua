-- Counts the records of jobs that have ended: a sorted set of their ids, the first to go first, and a hash of their bytes, with the
-- sum of them under ''.
local function kept_keys(set)
  local kept = prefix .. 'sluice:kept:' .. set
  return prefix .. set, kept, kept .. ':bytes'
end

local function uncount_kept(set, old)
  local _, kept, bytes = kept_keys(set)
  redis.call('ZREM', kept, old)
  local size = redis.call('HGET', bytes, old)
  if not size then return end
  redis.call('HDEL', bytes, old)
  redis.call('HINCRBY', bytes, '', -size)
end

-- Counts what is kept of a job that has ended, drops what nobody needs any more, and forgets what is too old, or too much.
-- `set` is 'completed' or 'failed', for dead letters. `args.bounds` has: maxKept, maxDeadLetters, maxKeptBytes, and the bytes that each
-- job takes beside its texts. `args.data` is what is kept of the data of the job. Without an id it forgets only.
local function keep(set)
  local ended, kept, bytes = kept_keys(set)
  local bounds, is_dead = args.bounds, set == 'failed'
  local max_count = is_dead and bounds.maxDeadLetters or bounds.maxKept
  local forgotten_at_once = 1000

  local function forget(old)
    uncount_kept(set, old)
    redis.call('ZREM', ended, old)
    -- A job that is added again under its id is another one.
    if redis.call('HEXISTS', prefix .. old, 'finishedOn') == 1 then
      redis.call('DEL', prefix .. old, prefix .. old .. ':logs')
    end
  end

  if not is_dead then
    for _, old in ipairs(redis.call('ZRANGEBYSCORE', kept, '-inf', now, 'LIMIT', 0, forgotten_at_once)) do forget(old) end
  end
  if id ~= '' then
    uncount_kept(set, id)
    if not is_dead then redis.call('HSET', key, 'data', args.data, 'opts', '{}') end
    local size = bounds.bytesOfEnded
    for _, field in ipairs({ 'data', 'returnvalue', 'failedReason' }) do size = size + redis.call('HSTRLEN', key, field) end
    redis.call('HSET', bytes, id, size)
    redis.call('HINCRBY', bytes, '', size)
    -- All that was kept before has expired.
    if not is_dead and redis.call('EXISTS', kept) == 0 then redis.call('ZREMRANGEBYSCORE', ended, '-inf', '(' .. now) end
    redis.call('ZADD', kept, is_dead and now or now + job.retentionMs, id)
    if not is_dead then
      -- Records that are kept for a time end with all their keys at once.
      redis.call('PEXPIRE', key, job.retentionMs)
      local until_ms = math.max(job.retentionMs, redis.call('PTTL', kept))
      for _, each in ipairs(ended_expires and { ended, kept, bytes } or { kept, bytes }) do redis.call('PEXPIRE', each, until_ms) end
    end
  end
  for _ = 1, forgotten_at_once do
    local sum = tonumber(redis.call('HGET', bytes, '') or '0')
    if redis.call('ZCARD', kept) <= max_count and sum <= bounds.maxKeptBytes then break end
    local oldest = redis.call('ZRANGE', kept, 0, 0)[1]
    if not oldest then break end
    forget(oldest)
  end
end
