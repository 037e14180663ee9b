-- The usual states of a bucket (algorithms/token-bucket.lua) on the server's clock: absent, draining, full, and empty again.
-- With another clock the time to live is set every time, which is left to the whole algorithm.
local PLAIN, FORMAT, LENGTH = 1, '<BI4I6I7I7I7', 32

local function read_policy(at)
  return {
    limit = tonumber(ARGV[at]), window = tonumber(ARGV[at + 1]), capacity = tonumber(ARGV[at + 2]),
    margin = tonumber(ARGV[at + 3]),
  }
end

local function prepare() end

local function write_anew(policy, key, raised, value)
  if raised > policy.capacity then return nil end
  local ttl = ceil(raised / policy.limit)
  -- With a quarter more than it needs, a key can be written several times before that has to be prolonged.
  local life = ttl + ceil(ttl / 4)
  local anew = pack(FORMAT, PLAIN, 0, now, raised, now + ttl, now + life)
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', life + policy.margin)
  elseif not redis_call('SET', key, anew, 'PX', life + policy.margin, 'NX') then return nil end
  return raised, ttl, value
end

local function consume(policy, key, units, value)
  local limit, raised = policy.limit, units * policy.window
  if not value then return write_anew(policy, key, raised, false) end
  if #value ~= LENGTH then return nil end
  local version, incarnation, at, level, ends_at, lives_until = unpack_struct(FORMAT, value)
  if version ~= PLAIN or incarnation > 0 or at > now then return nil end
  if now >= ends_at then return write_anew(policy, key, raised, value) end
  level = max(0, level - (now - at) * limit)
  -- Written under another limit, or changed since: how long a request of a queue is held is then read from both numbers.
  if ends_at - now ~= ceil(level / limit) then return nil end
  if level + raised > policy.capacity then return level, level > 0 and ends_at - now or 0, false, true end
  level = level + raised
  ends_at = now + ceil(level / limit)
  if ends_at > lives_until then return nil end
  redis_call('SETRANGE', key, '5', pack('<I6I7I7', now, level, ends_at))
  return level, ends_at - now, value
end

local function undo(key, before)
  if before then redis_call('SET', key, before, 'KEEPTTL') else redis_call('DEL', key) end
end

return { fields = 4, reads_string = true, read_policy = read_policy, prepare = prepare, consume = consume, undo = undo }
