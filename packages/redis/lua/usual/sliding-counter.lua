-- The usual states of a sliding counter: absent, live, full, and the first of a new window. Formats: algorithms/sliding-counter.lua.
local READS_STRING = true
local limit, window, margin, this, left

local function use(new_limit, new_window, new_margin)
  limit, window, margin = new_limit, new_window, new_margin
  this = now - now % window
  left = window - (now - this)
end

local function consume(key, units, value)
  local before = 0
  if value then
    if #value ~= 25 then return nil end
    local version, incarnation, start, current, previous = unpack_struct('<BI4I6I7I7', value)
    if version ~= 1 or incarnation > 0 or start > this or current > limit or previous > 9007199254740991 / window then return nil end
    if start == this then
      if current + units + floor(previous * left / window) > limit then return current, previous, false, true end
      redis_call('SETRANGE', key, '11', pack('<I7', current + units))
      return current + units, previous, value
    end
    if start + window == this then before = current end
  end
  if units + floor(before * left / window) > limit then return nil end
  local anew, ttl = pack('<BI4I6I7I7', 1, 0, this, units, before), this + 2 * window - now + margin
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', ttl)
  elseif not redis_call('SET', key, anew, 'PX', ttl, 'NX') then return nil end
  return units, before, value
end
