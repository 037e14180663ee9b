-- The usual states of a packed log with a low limit (algorithms/sliding-log-string.lua): absent, live, full, and all expired.
local VERSION, HEADER, HEADER_SIZE = 3, '<BI4I6', 11
local LONGEST_SHORT = 4194304

local function read_policy(at)
  return {
    limit = tonumber(ARGV[at]), window = tonumber(ARGV[at + 1]), resolution = tonumber(ARGV[at + 2]),
    ttl = ARGV[at + 3],
  }
end

local function prepare(policy)
  set_log_times(policy)
  if policy.window > LONGEST_SHORT then
    policy.entry, policy.two, policy.three, policy.size, policy.longest = '<I4B', '<I4BI4', '<I4BI4BI4', 5, 4294967295
  else
    policy.entry, policy.two, policy.three, policy.size, policy.longest = '<I3B', '<I3BI3', '<I3BI3BI3', 4, 16777215
  end
end

-- The first unit after an offset, and its offset, among the units from number `low` to number `high`, of which the last one is.
local function first_after(policy, value, low, high, offset)
  local entry, size, start, found = policy.entry, policy.size, HEADER_SIZE + 1, nil
  while low < high do
    local middle = floor((low + high) / 2)
    local at = unpack_struct(entry, value, start + middle * size)
    if at > offset then high, found = middle, at else low = middle + 1 end
  end
  return low, found or unpack_struct(entry, value, start + low * size)
end

-- The first live unit and its offset, where the unit before it, if any, is dead as the hint has it; mostly one or two more are by now.
local function first_live(policy, value, count, hint, cut)
  if hint + 1 >= count then return first_after(policy, value, 0, count - 1, cut) end
  local before, first, second, _
  if hint == 0 then
    first, _, second = unpack_struct(policy.two, value, HEADER_SIZE + 1)
  else
    before, _, first, _, second = unpack_struct(policy.three, value, HEADER_SIZE + 1 + (hint - 1) * policy.size)
    if before > cut then return first_after(policy, value, 0, hint - 1, cut) end
  end
  if first > cut then return hint, first end
  if second > cut then return hint + 1, second end
  return first_after(policy, value, hint + 2, count - 1, cut)
end

local function write_anew(policy, key, units, value)
  if units > policy.limit then return nil end
  local stamp = policy.stamp
  local anew = pack(HEADER, VERSION, 0, stamp) .. pack(policy.entry, 0, 0):rep(units)
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', policy.ttl)
  elseif not redis_call('SET', key, anew, 'PX', policy.ttl, 'NX') then return nil end
  return units, stamp + policy.window - now, value
end

local function consume(policy, key, units, value)
  if not value then return write_anew(policy, key, units, false) end
  local size, length = policy.size, #value
  local count = (length - HEADER_SIZE) / size
  if count < 1 or count % 1 ~= 0 then return nil end
  local version, incarnation, base = unpack_struct(HEADER, value)
  local last, hint = unpack_struct(policy.entry, value, length - size + 1)
  local offset, cut = policy.stamp - base, policy.cut - base
  if version ~= VERSION or incarnation > 0 or last > offset or offset > policy.longest then return nil end
  if last <= cut then return write_anew(policy, key, units, value) end
  local head, first = first_live(policy, value, count, hint, cut)
  local used, limit = count - head, policy.limit
  if used + units > limit then
    if used + units ~= limit + 1 then return nil end
    return used, base + first + policy.window - now, false, true
  end
  used = used + units
  if head > used / 4 + 2 then
    local live = value:sub(1, HEADER_SIZE) .. value:sub(HEADER_SIZE + 1 + head * size) .. pack(policy.entry, offset, 0):rep(units)
    redis_call('SET', key, live, 'PX', policy.ttl)
  else
    local suffix = pack(policy.entry, offset, head)
    if units > 1 then suffix = suffix:rep(units) end
    redis_call('APPEND', key, suffix)
    if base + last < policy.share_start then redis_call('PEXPIRE', key, policy.ttl) end
  end
  return used, base + first + policy.window - now, value
end

-- Undoes what consume wrote; before: the value that was there, or false.
local function undo(key, before)
  if before then redis_call('SET', key, before, 'KEEPTTL') else redis_call('DEL', key) end
end

return { fields = 4, reads_string = true, read_policy = read_policy, prepare = prepare, consume = consume, undo = undo }
