-- Decides a single grant. In the usual state no grant of the key has ended, a module of usual/ can
-- read the log, and all units fit. The functions for other states would double its 100 µs.
--
-- KEYS[1]  the key, KEYS[2] its grants (algorithms/granted-log.lua)
-- ARGV[1]  JSON: [limit, window in ms, resolution in ms, units wanted, terms as in grants.lua]
-- ARGV[2]  the call, ARGV[3] milliseconds of the caller's clock, as in usual-call.lua;
--          left out for the server's clock
-- Returns  { the report of grants.lua, now, and maybe how many stored values could not be read }
local call_text, caller_ms = ARGV[2], ARGV[3]
-- include parts/shared
local key, grants_key, limit, window, setting, wanted, terms = KEYS[1], KEYS[2], unpack(cjson.decode(ARGV[1]))
local resolution = setting
repeat
  local value = redis.pcall('GET', grants_key) or '\1'
  if type(value) ~= 'string' or value:byte() ~= 1 or #value % 19 ~= 1 then break end
  -- include parts/read-grants
  if grants[1] and (grants[1] <= now or grants[#grants - 2] > now + window / 10) then break end
  -- include parts/settle-grants
  local units, values, amount, detail, denied, write, where, data, ttl, extra, value_index = recorded
  repeat
    -- DECIDE
  until true
  if denied or not amount or amount == 0 then break end
  local room = limit - amount - held
  -- include parts/add-grant
  if amount + held > limit then break end
  if units > 0 then
    -- include parts/write
  end
  if has_changed then
    -- include parts/write-grants
  end
  return { { granted > 0 and 1 or 0, amount + held, detail, 0, 0, granted, units > 0 and 1 or 0 }, now }
until true
local reply = { '', now }
-- DEFINE
local decide_request, unreadable_values = define_general(reply)
decide_request('grant', { POLICIES }, 0, { wanted }, 0, { terms })
return { reply[3], now, unreadable_values() }
