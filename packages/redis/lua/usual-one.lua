-- Decides a call whose requests consume by one policy. A module of usual/ decides keys in a usual state, and usual/unusual.lua all others.
--
-- src/scripts/scripts.ts puts the module in the place of `-- DECIDE`, since a function would cost time in every call. It is given key, units, limit,
-- window, third, fourth and now. It sets x and y of the report (names.lua), or leaves x nil where the state is not usual; denied; and what
-- usual/write.lua writes.
--
-- KEYS     the key of each request
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[2]  the call: 'c<number>;<ttl margin ms>;<u32 from which incarnations are counted>;<1 for the server's clock>'
-- ARGV[3…6]  the limit, the window, and two more that the module uses. For one request of cost 1 that is all
-- ARGV[7]  '1' where a key occurs more than once
-- ARGV[8…]  the cost of each key, where not all are 1
-- Returns  one request alone: { report, now }; else { ARGV[2], now, a report for each key, and, if there were any, how many stored values
--          could not be read }
local limit, window, third, fourth = ARGV[3] + 0, ARGV[4] + 0, ARGV[5], ARGV[6]
local x, y, denied, write, where, data, ttl, drops
local values, at, units, key = nil, 0, 1, KEYS[1]

-- A request alone is decided before anything else is defined.
if not ARGV[7] then
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

third = tonumber(third)
local costs
if ARGV[8] then
  costs = {}
  for i = 8, #ARGV do costs[i - 7] = tonumber(ARGV[i]) end
end

local width, fields, reply = 1, nil, { ARGV[2], now }
local decide_row, unreadable_values, policies
local repeats, first, last, size = ARGV[7] == '1', 0, 0, #KEYS
for number = 1, size do
  if READS_STRINGS and number > last and not repeats then
    -- Arguments have to fit the stack of Lua.
    first, last = last, number + 255
    if last > size then last = size end
    values = redis_call('MGET', unpack(KEYS, number, last))
  end
  at, key = number - 1 - first, KEYS[number]
  if costs then units = costs[number] end
  x, denied, write, where, ttl, drops = nil, nil, nil, nil, nil, nil
  if units and units > 0 then
    -- DECIDE
  end
  if not x then
    at, fields = number - 1, { 1, limit, window, third, fourth }
    -- include usual/unusual
  else
    -- include usual/write
    if x >= 67108863 or y >= 134217728 then reply[number + 2] = { denied and 0 or 1, x > 9007199254740900 and string.format('%.0f', x) or x, y, 0 }
    elseif denied then reply[number + 2] = -1 - (x * 134217728 + y)
    else reply[number + 2] = x * 134217728 + y end
  end
end
if unreadable_values and unreadable_values() > 0 then reply[size + 3] = unreadable_values() end
return reply
