-- The usual states of a packed log with a low limit: absent, live, full, and all expired. Formats: algorithms/sliding-log-string.lua.
-- Closures cost time in every call, so there are few, and formats are written out.
local READS_STRING = true
local limit, window, ttl, stamp, cut

local function use(new_limit, new_window, resolution, new_ttl)
  limit, window, ttl, cut = new_limit, new_window, new_ttl, now - new_window
  local beyond = now % resolution
  stamp = beyond == 0 and now or now - beyond + resolution
end

-- The first unit after an offset, and its offset, among the units from number `low` to number `high`, of which the last one is.
local function first_after(value, low, high, offset)
  local entry, size, found = '<I3B', 4, nil
  if window > 4194304 then entry, size = '<I4B', 5 end
  while low < high do
    local middle = floor((low + high) / 2)
    local at = unpack_struct(entry, value, 12 + middle * size)
    if at > offset then high, found = middle, at else low = middle + 1 end
  end
  return low, found or unpack_struct(entry, value, 12 + low * size)
end

local function consume(key, units, value)
  local entry, two, three, size, longest = '<I3B', '<I3BI3', '<I3BI3BI3', 4, 16777215
  if window > 4194304 then entry, two, three, size, longest = '<I4B', '<I4BI4', '<I4BI4BI4', 5, 4294967295 end
  if value then
    local length = #value
    local count = (length - 11) / size
    if count < 1 or count > 512 or count % 1 ~= 0 then return nil end
    local version, incarnation, base = unpack_struct('<BI4I6', value)
    local last, hint = unpack_struct(entry, value, length - size + 1)
    local offset, dead_to = stamp - base, cut - base
    if version ~= 3 or incarnation > 0 or last > offset or offset > longest then return nil end
    if last > dead_to then
      -- The first live unit and its offset. Where the unit before it is dead as the hint has it, mostly one or two more are by now.
      local head, first, before, second, _
      if hint + 1 >= count then
        head, first = first_after(value, 0, count - 1, dead_to)
      else
        if hint == 0 then
          first, _, second = unpack_struct(two, value, 12)
        else
          before, _, first, _, second = unpack_struct(three, value, 12 + (hint - 1) * size)
        end
        head = hint
        if before and before > dead_to then head, first = first_after(value, 0, hint - 1, dead_to)
        elseif first <= dead_to then
          if second > dead_to then head, first = hint + 1, second
          else head, first = first_after(value, hint + 2, count - 1, dead_to) end
        end
      end
      local used = count - head + units
      if used > limit then
        -- Another wait than that for the oldest unit is left to the whole algorithm.
        if used ~= limit + 1 then return nil end
        return used - units, min(base + first, stamp) + window - now, false, true
      end
      if head > used / 4 + 2 then
        local live = value:sub(1, 11) .. value:sub(12 + head * size) .. pack(entry, offset, 0):rep(units)
        redis_call('SET', key, live, 'PX', ttl)
      else
        local suffix = pack(entry, offset, head)
        if units > 1 then suffix = suffix:rep(units) end
        redis_call('APPEND', key, suffix)
        -- The time to live is set with the first unit of each quarter window.
        if base + last < floor(stamp * 4 / window) * window / 4 then redis_call('PEXPIRE', key, ttl) end
      end
      return used, min(base + first, stamp) + window - now, value
    end
  end
  if units > limit then return nil end
  local anew = pack('<BI4I6', 3, 0, stamp) .. pack(entry, 0, 0):rep(units)
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', ttl)
  elseif not redis_call('SET', key, anew, 'PX', ttl, 'NX') then return nil end
  return units, stamp + window - now, value
end
