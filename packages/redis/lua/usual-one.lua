-- Decides a call whose requests consume by one policy. A module of usual/ decides keys in a usual state, and usual/unusual.lua all others.
--
-- src/scripts/scripts.ts puts the module in the place of `-- DECIDE`, since a function would cost time in every call. It is given key, units, limit,
-- window, setting and now. It sets x and y of the report (names.lua), or leaves x nil where the state is not usual; denied; and what
-- usual/write.lua writes.
--
-- KEYS     the key of each request
-- ARGV[1]  the limit
-- ARGV[2]  the window in ms
-- ARGV[3]  a number that only this module uses; may be left out where each module says so
-- ARGV[4]  the call: 'c<number>', or 'c<number>;<u32 from which incarnations are counted>' with a caller's clock
-- ARGV[5]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[6]  '1' where a key occurs more than once
-- ARGV[7…] the cost of each key, where not all are 1
-- One request of cost 1 needs no more than ARGV[1] to ARGV[5], and with the server's clock no more than ARGV[1] to ARGV[3].
-- Returns  without ARGV[6]: { report, now, and, where the state is not usual, how many stored values could not be read };
--          else { ARGV[4], now, a report for each key, and, if there were any, how many stored values could not be read }
local key, limit, window, setting, caller_ms = KEYS[1], ARGV[1] + 0, ARGV[2] + 0, ARGV[3], ARGV[5]
if setting then setting = tonumber(setting) or setting end
-- include shared
local values, value_index, units = nil, 1, 1
local x, y, denied, write, where, data, ttl, drops

-- A request alone is decided before anything else is defined.
if not ARGV[6] then
  -- DECIDE
  if x then
    -- include usual/write
    -- As in names.lua, which is not there yet.
    if x >= 67108863 or y >= 134217728 then
      return { { denied and 0 or 1, x > 9007199254740900 and string.format('%.0f', x) or x, y, 0 }, now }
    end
    if denied then return { -1 - (x * 134217728 + y), now } end
    return { x * 134217728 + y, now }
  end
end

local call_text, width, size, costs = ARGV[4], 1, #KEYS, nil
if ARGV[7] then
  costs = {}
  for i = 7, #ARGV do costs[i - 6] = tonumber(ARGV[i]) end
end

local fields, reply = nil, { call_text or '', now }
local decide_row, unreadable_values, policies
local repeats, values_before, values_end = ARGV[6] == '1', 0, 0
for number = 1, size do
  if READS_STRINGS and number > values_end and not repeats then
    -- Arguments have to fit the stack of Lua.
    values_before, values_end = values_end, number + 255
    if values_end > size then values_end = size end
    values = redis_call('MGET', unpack(KEYS, number, values_end))
  end
  value_index, key = number - values_before, KEYS[number]
  if costs then units = costs[number] end
  x, denied, write, where, ttl, drops = nil, nil, nil, nil, nil, nil
  if units and units > 0 then
    -- DECIDE
  end
  if not x then
    local row_start = number - 1
    fields = { 1, limit, window, setting }
    -- include usual/unusual
  else
    -- include usual/write
    if x >= 67108863 or y >= 134217728 then reply[number + 2] = { denied and 0 or 1, x > 9007199254740900 and string.format('%.0f', x) or x, y, 0 }
    elseif denied then reply[number + 2] = -1 - (x * 134217728 + y)
    else reply[number + 2] = x * 134217728 + y end
  end
end
local unreadable = unreadable_values and unreadable_values() or 0
if not ARGV[6] then return { reply[3], now, unreadable } end
if unreadable > 0 then reply[size + 3] = unreadable end
return reply
