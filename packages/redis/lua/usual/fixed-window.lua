-- The usual states of a fixed window: absent, open, full, and over. Formats: algorithms/fixed-window.lua.
local READS_STRING = true
local limit, window, margin, begin

local function use(new_limit, new_window, aligned, new_margin)
  limit, window, margin = new_limit, new_window, new_margin
  begin = aligned == 1 and now - now % window or now
end

local function consume(key, units, value)
  if value then
    if #value ~= 18 then return nil end
    local version, incarnation, start, count = unpack_struct('<BI4I6I7', value)
    if version ~= 1 or incarnation > 0 or start > now or count > limit then return nil end
    if now < start + window then
      if count + units > limit then return count, now - start + 1, false, true end
      redis_call('SETRANGE', key, '11', pack('<I7', count + units))
      return count + units, now - start + 1, value
    end
  end
  if units > limit then return nil end
  local anew, ttl = pack('<BI4I6I7', 1, 0, begin, units), begin + window - now + margin
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', ttl)
  elseif not redis_call('SET', key, anew, 'PX', ttl, 'NX') then return nil end
  return units, now - begin + 1, value
end
