-- Decides the usual states of a sliding counter: absent, live, full, and the first of a new window.
-- Formats: algorithms/sliding-counter.lua.
-- include parts/read-string
local this, before = now - now % window, 0
local left = this + window - now
if value then
  if #value ~= 25 then break end
  local version, incarnation, start, current, previous = unpack_struct('<BI4I6I7I7', value)
  if version ~= 1 or incarnation > 0 or start > this or current > limit or previous > 9007199254740991 / window then break end
  if start == this then
    amount, detail = current, previous
    denied = current + units + math.floor(previous * left / window) > limit
    if not denied then
      amount = current + units
      write, where, data = 'SETRANGE', '11', pack('<I7', amount)
    end
    break
  end
  if start + window == this then before = current end
end
if units + math.floor(before * left / window) > limit then break end
amount, detail = units, before
write, data, ttl = 'SET', pack('<BI4I6I7I7', 1, 0, this, units, before), left + window
