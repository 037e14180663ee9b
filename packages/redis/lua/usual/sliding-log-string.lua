-- The usual states of a packed log with a low limit: absent, live, full, and all expired. Formats: algorithms/sliding-log-string.lua.
-- setting: the resolution in ms; may be left out where that is 1.
local stamp, cut, resolution = now, now - window, 1
if setting and setting > 1 then
  local beyond = now % setting
  resolution = setting
  if beyond > 0 then stamp = now - beyond + setting end
end
local entry, two, three, size, longest = '<I3B', '<I3BI3', '<I3BI3BI3', 4, 16777215
if window > 4194304 then entry, two, three, size, longest = '<I4B', '<I4BI4', '<I4BI4BI4', 5, 4294967295 end
local is_live, is_ttl_due = false, true
if value then
  local length = #value
  local count = (length - 11) / size
  if count < 1 or count > 512 or count % 1 ~= 0 then break end
  local version, incarnation, base = unpack_struct('<BI4I6', value)
  local last, hint = unpack_struct(entry, value, length - size + 1)
  local offset, dead_to = stamp - base, cut - base
  if version ~= 3 or incarnation > 0 or last > offset or offset > longest then break end
  if last > dead_to then
    is_live = true
    -- The first live unit and its offset. Where the unit before it is dead as the hint has it, mostly one or two more are by now.
    local head, high, first, before, second, _ = 0, count - 1, nil, nil, nil, nil
    if hint < high then
      if hint == 0 then
        first, _, second = unpack_struct(two, value, 12)
      else
        before, _, first, _, second = unpack_struct(three, value, 12 + (hint - 1) * size)
      end
      if before and before > dead_to then high, first = hint - 1, before
      elseif first > dead_to then head, high = hint, hint
      elseif second > dead_to then head, high, first = hint + 1, hint + 1, second
      else head, first = hint + 2, nil end
    end
    while head < high do
      local middle = (head + high - (head + high) % 2) / 2
      local time = unpack_struct(entry, value, 12 + middle * size)
      if time > dead_to then high, first = middle, time else head = middle + 1 end
    end
    first = first or unpack_struct(entry, value, 12 + head * size)

    x = count - head + units
    y = (first > offset and stamp or base + first) + window - now
    if x > limit then
      -- Another wait than that for the oldest unit is left to the whole algorithm.
      if x == limit + 1 then x, denied = x - units, true else x = nil end
      break
    end
    if head > x / 4 + 2 then
      write, data = 'SET', value:sub(1, 11) .. value:sub(12 + head * size) .. pack(entry, offset, 0):rep(units)
    else
      write, data = 'APPEND', pack(entry, offset, head)
      if units > 1 then data = data:rep(units) end
      -- The time to live is set with the first unit of each quarter window.
      is_ttl_due = (base + last) * 4 < stamp * 4 - stamp * 4 % window
    end
  end
end
if not is_live then
  if units > limit then break end
  x, y = units, stamp + window - now
  write, data = 'SET', pack('<BI4I6', 3, 0, stamp) .. pack(entry, 0, 0):rep(units)
end
if is_ttl_due then ttl = window + math.ceil(window / ttl_parts) + resolution - 1 end
