-- Decides a call whose requests all consume by the same several policies, with the modules of
-- usual-one.lua. A request is written only after all its keys are decided. If a key denies, or is
-- in an unusual state, parts/unusual.lua decides the whole request. The code between `-- EACH` and
-- `-- END` is repeated for each policy, with its number N appended to its variables.
--
-- KEYS     the key of each policy of each request, one request after the other
-- ARGV     for each policy: the limit, the window in ms, and the setting; then the same
--          as from ARGV[4] of usual-one.lua for several keys
-- Returns  as usual-one.lua for several keys
local caller_ms = ARGV[3 * WIDTH + 2]
-- include parts/shared
local call_text, repeats, costs = ARGV[3 * WIDTH + 1], ARGV[3 * WIDTH + 3] == '1', nil
-- EACH
local limit, window, setting = ARGV[3 * N - 2] + 0, ARGV[3 * N - 1] + 0, ARGV[3 * N]
setting = setting ~= '' and (tonumber(setting) or setting) or nil
-- END
if ARGV[4 + 3 * WIDTH] then
  costs = {}
  for i = 1, #KEYS do costs[i] = tonumber(ARGV[3 + 3 * WIDTH + i]) end
end

local keys, reply, size, values, values_before, values_end = KEYS, { call_text, now }, 2, nil, 0, 0
local decide_request, unreadable_values, policies
for request_start = 0, #keys - WIDTH, WIDTH do
  if READS_STRINGS and request_start >= values_end and not repeats then
    -- Arguments must fit Lua's stack.
    values_before, values_end = request_start, request_start + (256 - 256 % WIDTH)
    if values_end > #keys then values_end = #keys end
    values = redis_call('MGET', unpack(keys, request_start + 1, values_end))
  end
  local is_usual, is_foreign, is_second = false, false, false
  if repeats then
    for i = request_start + 2, request_start + WIDTH do
      for j = request_start + 1, i - 1 do is_second = is_second or keys[i] == keys[j] end
    end
  end
  repeat
    if is_second then break end
    local units, value_index = 1, request_start - values_before
    -- EACH
    local key, amount, detail, denied, write, where, data, ttl, extra, is_new = keys[request_start + N]
    value_index = value_index + 1
    if costs then units = costs[request_start + N] or 0 end
    if units > 0 then repeat
      -- DECIDE
    until true end
    if denied or not amount then break end
    -- END
    -- EACH
    if is_new and not is_foreign then
      is_foreign = not redis_call('SET', key, data, 'NX', 'PX', ttl + ttl_margin)
      if not is_foreign then write = nil end
    end
    -- END
    if is_foreign then
      -- EACH
      if is_new and not write then redis_call('DEL', key) end
      -- END
      break
    end
    is_usual = true
    -- EACH
    -- include parts/write
    -- include parts/report
    reply[size + N] = report
    -- END
  until true
  if not is_usual then
    local fields = {}
    -- EACH
    fields[3 * N - 2], fields[3 * N - 1], fields[3 * N] = limit, window, setting
    -- END
    -- include parts/unusual
    decide_request('consume', policies, request_start, costs, request_start)
  end
  size = size + WIDTH
end
if unreadable_values and unreadable_values() > 0 then reply[size + 1] = unreadable_values() end
return reply
