-- The usual states of a sliding counter (algorithms/sliding-counter.lua): absent, live, full, and the first of a new window.
local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7I7', 25

local function read_policy(at)
  return { limit = tonumber(ARGV[at]), window = tonumber(ARGV[at + 1]), margin = tonumber(ARGV[at + 2]) }
end

local function prepare(policy)
  policy.start = now - now % policy.window
end

local function write_anew(policy, key, units, previous, value)
  local window, start = policy.window, policy.start
  if units + floor(previous * (window - (now - start)) / window) > policy.limit then return nil end
  local anew, ttl = pack(FORMAT, VERSION, 0, start, units, previous), start + 2 * window - now + policy.margin
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', ttl)
  elseif not redis_call('SET', key, anew, 'PX', ttl, 'NX') then return nil end
  return units, previous, value
end

local function consume(policy, key, units, value)
  if not value then return write_anew(policy, key, units, 0, false) end
  if #value ~= LENGTH then return nil end
  local window, this = policy.window, policy.start
  local version, incarnation, start, current, previous = unpack_struct(FORMAT, value)
  if version ~= VERSION or incarnation > 0 or start > this then return nil end
  if start < this then
    return write_anew(policy, key, units, start + window == this and current or 0, value)
  end
  if current + units + floor(previous * (window - (now - this)) / window) > policy.limit then
    return current, previous, false, true
  end
  redis_call('SETRANGE', key, '11', pack('<I7', current + units))
  return current + units, previous, value
end

local function undo(key, before)
  if before then redis_call('SET', key, before, 'KEEPTTL') else redis_call('DEL', key) end
end

return { fields = 3, reads_string = true, read_policy = read_policy, prepare = prepare, consume = consume, undo = undo }
