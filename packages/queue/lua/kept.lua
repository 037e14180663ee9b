-- Counts the records of ended jobs: a sorted set of their ids, ordered by removal, and a hash of their bytes, with the sum under ''.
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

-- Counts the record of an ended job, drops its unneeded data, and deletes records that are too old or too many. `set` is 'completed' or
-- 'failed', for dead letters. `args.bounds` has: maxKept, maxDeadLetters, maxKeptBytes, and the overhead of each job in bytes. `args.data`
-- is the part of the job's data to keep. Without an id it only deletes.
local function keep(set)
  local ended, kept, bytes = kept_keys(set)
  local bounds, is_dead = args.bounds, set == 'failed'
  local max_count = is_dead and bounds.maxDeadLetters or bounds.maxKept
  local forgotten_at_once = 1000

  local function forget(old)
    uncount_kept(set, old)
    redis.call('ZREM', ended, old)
    -- A job added again with the same id is a different job.
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
    -- All earlier records have expired.
    if not is_dead and redis.call('EXISTS', kept) == 0 then redis.call('ZREMRANGEBYSCORE', ended, '-inf', '(' .. now) end
    redis.call('ZADD', kept, is_dead and now or now + job.retentionMs, id)
    if not is_dead then
      -- Records expire on their own, as do the sets that list them.
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
