-- Decides the usual states of a fixed window: absent, open, full, and over.
-- Formats: algorithms/fixed-window.lua.
-- setting: 1 if windows are aligned to the clock.
-- include parts/read-string
if value then
  if #value ~= 18 then break end
  local version, incarnation, start, count = unpack_struct('<BI4I6I7', value)
  if version ~= 1 or incarnation > 0 or start > now or count > limit then break end
  if now < start + window then
    amount, detail = count, now - start + 1
    denied = count + units > limit
    if not denied then
      amount = count + units
      write, where, data = 'SETRANGE', '11', pack('<I7', amount)
    end
    break
  end
end
if units > limit then break end
local begin = setting == 1 and now - now % window or now
amount, detail = units, now - begin + 1
write, data, ttl = 'SET', pack('<BI4I6I7', 1, 0, begin, units), begin + window - now
