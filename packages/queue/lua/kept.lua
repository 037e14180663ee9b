-- What is kept of jobs that have ended is counted: a sorted set of their ids, the first to go first, and a hash of their bytes, with the sum
-- of them under ''.
local function uncount_kept(kept, bytes, id)
  redis.call('ZREM', kept, id)
  local size = redis.call('HGET', bytes, id)
  if not size then return end
  redis.call('HDEL', bytes, id)
  redis.call('HINCRBY', bytes, '', -size)
end
