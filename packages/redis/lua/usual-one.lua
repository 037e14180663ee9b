-- Decides a call whose requests consume by one policy. A module of usual/ decides keys in a usual
-- state, parts/unusual.lua all others.
--
-- The module's code replaces `-- DECIDE`, because a function would cost time in every call. It
-- reads key, units, limit, window, setting and now. It sets amount and detail of the report
-- (parts/report.lua), denied, and the variables of parts/write.lua. If the state is unusual, it
-- leaves amount nil. A denial is unusual if COUNTS_DENIED is true.
--
-- KEYS     the key of each request
-- ARGV[1]  the limit
-- ARGV[2]  the window in ms
-- ARGV[3]  the setting, which only this module reads; '' or absent for its default
-- ARGV[4]  the call: 'c<number>'; with a caller's clock 'c<number>;<incarnation>', the u32 from
--          which incarnations are counted
-- ARGV[5]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[6]  '1' if a key occurs more than once, else '0'; or the cost of a single key
-- ARGV[7…] the cost of each of several keys, negative for a charge; or the setting for a lease that
--          is released or renewed. Absent if all costs are 1
-- A single key of cost 1 has no ARGV[6] and, with the server's clock, no ARGV[4] or ARGV[5].
-- Returns  { ARGV[4], now, a report for each key, and the number of unreadable stored values, if
--          any }; for a single key { the report, now, and maybe that number }
local keys, argv = KEYS, ARGV
local key, limit, window, setting, call_text, caller_ms = keys[1], argv[1] + 0, argv[2] + 0, argv[3], argv[4], argv[5]
if setting then setting = setting ~= '' and (tonumber(setting) or setting) or nil end
-- include parts/shared
local values, value_index, units, is_charge = nil, 1, 1, false
local key_count = HAS_GRANTS and #keys / 2 or #keys
local is_alone = key_count == 1

-- A single request is decided before anything else is defined.
if is_alone then
  if argv[6] then
    units = argv[6] + 0
    if units < 0 then units, is_charge = -units, true end
  end
  local amount, detail, denied, write, where, data, ttl, extra, is_new
  if units > 0 then repeat
    if HAS_GRANTS and redis_call('EXISTS', key .. '~') == 1 then break end
    -- DECIDE
  until true end
  if amount and not (denied and (COUNTS_DENIED or is_charge)) then
    -- include parts/write
    -- include parts/report
    return { report, now }
  end
end

local size, costs, policy_setting = key_count, nil, setting
if argv[7] then
  costs = {}
  for i = 7, #argv do costs[i - 6] = tonumber(argv[i]) or argv[i] end
end

local fields, reply = nil, { call_text or '', now }
local decide_request, unreadable_values, policies
local repeats, values_before, values_end = not is_alone and argv[6] == '1', 0, 0
for number = 1, size do
  if READS_STRINGS and number > values_end and not repeats then
    -- Arguments must fit Lua's stack.
    values_before, values_end = values_end, number + 255
    if values_end > size then values_end = size end
    values = redis_call('MGET', unpack(keys, number, values_end))
  end
  local amount, detail, denied, write, where, data, ttl, extra, is_new
  value_index, key = number - values_before, keys[number]
  if costs then
    units, setting, is_charge = costs[number], policy_setting, false
    if type(units) == 'string' then
      setting, units = units, units:find(':', 1, true) and 1
    elseif units < 0 then
      units, is_charge = -units, true
    end
  end
  -- A lone request was tried above.
  if units and units > 0 and not is_alone then repeat
    if HAS_GRANTS and redis_call('EXISTS', key .. '~') == 1 then break end
    -- DECIDE
  until true end
  if is_new and amount then
    if redis_call('SET', key, data, 'NX', 'PX', ttl + ttl_margin) then write = nil else amount = nil end
  end
  if not amount or denied and (COUNTS_DENIED or is_charge) then
    fields = { limit, window, setting }
    -- include parts/unusual
    local sign, lease, lease_units = tostring(setting):match('^([-+])(%d+):(%d+)$')
    if sign then
      local operation = sign == '+' and 'renew' or 'release'
      decide_request(operation, policies, number - 1, { lease_units + 0 }, 0, { lease + 0, 0, 0 })
    else
      decide_request(is_charge and 'charge' or 'consume', policies, number - 1, { units }, 0)
    end
  else
    -- include parts/write
    -- include parts/report
    reply[number + 2] = report
  end
end
local unreadable = unreadable_values and unreadable_values() or 0
if is_alone then return { reply[3], now, unreadable } end
if unreadable > 0 then reply[size + 3] = unreadable end
return reply
