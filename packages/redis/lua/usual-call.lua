-- Decides a call whose requests all have the same policies, with the modules of usual/. A request
-- is written only after all its keys are decided. If one of several keys denies, or a key is in an
-- unusual state, the whole algorithms decide the request.
--
-- A module's code replaces `-- DECIDE`, because a function would cost time in every call. It reads
-- key, units, limit, window, setting and now. It sets amount and detail of the report
-- (parts/report.lua), denied, and the variables of parts/write.lua. If the state is unusual, it
-- leaves amount nil. A denial is unusual if COUNTS_DENIED is true. The code between `-- EACH` and
-- `-- END` is repeated for each policy, with its number N appended to the module's variables.
--
-- KEYS     the key of each policy of each request, one request after the other; then their grants
-- ARGV     for each policy:
--            the limit, the window in ms, and the setting, which only the module reads ('' for its
--            default)
--          then, except for a single request of one policy and cost 1 by the server's clock:
--            the call: 'c<number>'; with a caller's clock 'c<number>;<incarnation>', the u32 from
--            which incarnations are counted
--            milliseconds of the caller's clock; '' for the server's own
--            '1' if a key occurs more than once, else '0'
--            the cost of each key, absent if all costs are 1. With a single policy, a negative one
--            is that of a charge, and a lease that is released or renewed has its setting here
-- Returns  { the call, now, a report for each key, and the number of unreadable stored values, if
--          any }; for a single request of one policy { the report, now, and maybe that number }
local keys, argv = KEYS, ARGV
local key, call_text, caller_ms = keys[1], argv[3 * WIDTH + 1], argv[3 * WIDTH + 2]
-- include parts/shared
local key_count = HAS_GRANTS and #keys / 2 or #keys
local is_alone, values, value_index, units, cost, is_charge = key_count == 1, nil, 1, 1, nil, false
-- EACH
local limit, window, setting = argv[3 * N - 2] + 0, argv[3 * N - 1] + 0, argv[3 * N]
setting = setting ~= '' and (tonumber(setting) or setting) or nil
-- END
-- LONE
local reply, repeats, values_before, values_end = { call_text or '', now }, argv[3 * WIDTH + 3] == '1', 0, 0
local decide_request, unreadable_values, policies, costs
for request_start = 0, key_count - WIDTH, WIDTH do
  local is_usual = false
  if not is_alone then repeat
    if READS_STRINGS and request_start >= values_end and not repeats then
      -- Arguments must fit Lua's stack.
      values_before, values_end = request_start, request_start + (256 - 256 % WIDTH)
      if values_end > key_count then values_end = key_count end
      values = redis_call('MGET', unpack(keys, request_start + 1, values_end))
    end
    value_index = request_start - values_before
    -- EACH
    local key, setting, amount, detail, denied, write, where, data, ttl, extra = keys[request_start + N], setting
    value_index, cost = value_index + 1, argv[3 * WIDTH + 3 + request_start + N]
    -- include parts/cost
    if units > 0 then repeat
      if HAS_GRANTS and redis_call('EXISTS', key .. '~') == 1 then break end
      -- DECIDE
    until true end
    if not amount or denied and (WIDTH > 1 or COUNTS_DENIED or is_charge) then break end
    -- END
    is_usual = true
    -- EACH
    -- include parts/write
    -- include parts/report
    reply[request_start + 2 + N] = report
    -- END
  until true end
  if not is_usual then
    -- The functions, which start in prelude.lua, are defined for the first such request.
    if not decide_request then
      -- DEFINE
      decide_request, unreadable_values = define_general(reply)
      policies, costs = { POLICIES }, {}
      for i = 1, key_count do
        local amount = (argv[3 * WIDTH + 3 + i] or '1'):gsub('^%-', '')
        costs[i] = tonumber(amount) or amount
      end
    end
    local operation, sign, lease, lease_units = 'consume', (cost or ''):match('^([-+])(%d+):(%d+)$')
    if sign then
      operation = sign == '+' and 'renew' or 'release'
      decide_request(operation, policies, request_start, { lease_units + 0 }, 0, { lease + 0, 0, 0 })
    else
      if is_charge then operation = 'charge' end
      decide_request(operation, policies, request_start, costs, request_start)
    end
  end
end
local unreadable = unreadable_values and unreadable_values() or 0
if is_alone then return { reply[3], now, unreadable } end
if unreadable > 0 then reply[#reply + 1] = unreadable end
return reply
