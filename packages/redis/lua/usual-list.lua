-- Decides a call whose requests consume by one list of several policies. As in usual-one.lua, the
-- modules in the place of `-- DECIDE` decide keys in a usual state. A request is written only after
-- all of its keys have been decided. If one of them denies, or is in no usual state,
-- usual/unusual.lua decides the whole request.
--
-- KEYS     the key of each policy of each request, one request after the other
-- ARGV[1]  the call, as ARGV[4] of usual-one.lua
-- ARGV[2]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[3]  the number of policies
-- ARGV[4]  '1' if a key occurs more than once, else '0'
-- ARGV[5…] for each policy: the number of its module, the limit, the window in ms, and the setting;
--          then the cost of each key, left out if all are 1
-- Returns  { ARGV[1], now, a report for each key, and, if there were any, how many stored values
--          could not be read }
local caller_ms = ARGV[2]
-- include shared
local call_text, width, repeats, values, values_before, values_end = ARGV[1], ARGV[3] + 0, ARGV[4] == '1', nil, 0, 0
local fields, costs = {}, nil
for i = 1, 4 * width do fields[i] = tonumber(ARGV[4 + i]) or ARGV[4 + i] end
if ARGV[5 + 4 * width] then
  costs = {}
  for i = 1, #KEYS do costs[i] = tonumber(ARGV[4 + 4 * width + i]) end
end

local reply, size = { call_text, now }, 2
local decide_request, unreadable_values, policies
-- What each policy of a request came to, and what is to be written for it: seven each.
local found = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
for request_start = 0, #KEYS - width, width do
  if READS_STRINGS and request_start >= values_end and not repeats then
    -- Arguments have to fit the stack of Lua.
    values_before, values_end = request_start, request_start + math.max(1, math.floor(256 / width)) * width
    if values_end > #KEYS then values_end = #KEYS end
    values = redis_call('MGET', unpack(KEYS, request_start + 1, values_end))
  end
  local is_usual = true
  for i = 1, width do
    local value_index, key, units, is_second = request_start + i - values_before, KEYS[request_start + i], 1, false
    if costs then units = costs[request_start + i] end
    if repeats then
      for j = request_start + 1, request_start + i - 1 do is_second = is_second or KEYS[j] == key end
    end
    local kind, limit, window, setting = unpack(fields, 4 * i - 3, 4 * i)
    local amount, detail, denied, write, where, data, ttl, extra
    if units and units > 0 and not is_second then
      -- DECIDE
    end
    if denied or not amount then
      is_usual = false
      break
    end
    local to = 7 * i - 6
    found[to], found[to + 1], found[to + 2], found[to + 3] = amount, detail, write or false, where or false
    found[to + 4], found[to + 5], found[to + 6] = data or false, ttl or false, extra or false
  end
  if not is_usual then
    -- include usual/unusual
    decide_request('consume', policies, request_start, costs, request_start)
  else
    for i = 1, width do
      local denied, amount, detail, write, where, data, ttl, extra = false, unpack(found, 7 * i - 6, 7 * i)
      local key = KEYS[request_start + i]
      -- include usual/write
      -- include report
      reply[size + i] = report
    end
  end
  size = size + width
end
if unreadable_values and unreadable_values() > 0 then reply[size + 1] = unreadable_values() end
return reply
