-- Decides the usual states of a packed log with a low limit: absent, live, full, and all expired.
-- Formats and constants: algorithms/sliding-log-string.lua.
-- setting: the resolution in ms; 1 if absent.
-- include parts/read-string
local VERSION, HEADER, HEADER_SIZE, MAX_UNITS, SHORT_WINDOW = 3, '<I5I6', 11, 512, 4194304
local dead_until, resolution = now - window, setting or 1
local stamp = now + -now % resolution
local entry, four, size, max_offset = '<I3B', '<I3xI3xI3xI3', 4, 16777215
if window > SHORT_WINDOW then entry, four, size, max_offset = '<I4B', '<I4xI4xI4xI4', 5, 4294967295 end
local is_live, is_ttl_due = false, true
if value then
  local length = #value
  local count = (length - HEADER_SIZE) / size
  if count < 1 or count > MAX_UNITS or count % 1 ~= 0 then break end
  -- The first incarnation, 0, is read as part of the version.
  local version, base = unpack_struct(HEADER, value)
  local last, hint = unpack_struct(entry, value, length - size + 1)
  local offset, dead_offset = stamp - base, dead_until - base
  if version ~= VERSION or last > offset or offset > max_offset then break end
  if last > dead_offset then
    is_live = true
    -- Find the first live unit and its offset. If the hint is right, few units have usually expired
    -- since: check three of them, then in doubling steps.
    local head, high, first = hint, count - 1, nil
    if hint + 2 > high then head = 0
    else
      -- Part of the header precedes the first unit.
      local before, one, two, three = unpack_struct(four, value, HEADER_SIZE + 1 + (hint - 1) * size)
      if hint > 0 and before > dead_offset then head, high, first = 0, hint - 1, before
      elseif one > dead_offset then high, first = head, one
      elseif two > dead_offset then
        head, first = hint + 1, two
        high = head
      elseif three > dead_offset then
        head, first = hint + 2, three
        high = head
      else
        local probe, step = hint + 4, 2
        head = hint + 3
        while probe < high do
          local time = unpack_struct(entry, value, HEADER_SIZE + 1 + probe * size)
          if time > dead_offset then
            high, first = probe, time
            break
          end
          head, probe, step = probe + 1, probe + step, step * 2
        end
      end
    end
    while head < high do
      local middle = (head + high - (head + high) % 2) / 2
      local time = unpack_struct(entry, value, HEADER_SIZE + 1 + middle * size)
      if time > dead_offset then high, first = middle, time else head = middle + 1 end
    end
    first = first or unpack_struct(entry, value, HEADER_SIZE + 1 + head * size)

    amount = count - head + units
    detail = (first > offset and stamp or base + first) + window - now
    if amount > limit then
      -- Only the full algorithm reports a wait other than that for the oldest unit.
      if amount == limit + 1 then amount, denied = amount - units, true else amount = nil end
      break
    end
    if head > amount / 4 + 2 then
      write, data = 'SET', value:sub(1, HEADER_SIZE) .. value:sub(HEADER_SIZE + 1 + head * size) .. pack(entry, offset, 0):rep(units)
    else
      write, data = 'APPEND', pack(entry, offset, head)
      if units > 1 then data = data:rep(units) end
      -- The first unit of each quarter window sets the TTL.
      is_ttl_due = (base + last) * 4 < stamp * 4 - stamp * 4 % window
    end
  end
end
if not is_live then
  if units > limit then break end
  amount, detail = units, stamp + window - now
  write, data = 'SET', pack(HEADER, VERSION, stamp) .. pack(entry, 0, 0):rep(units)
end
if is_ttl_due then ttl = window + math.ceil(window / ttl_parts) + resolution - 1 end
