-- Decides a call whose requests consume by one list of policies. Modules of usual/ decide keys in a usual state, and what prelude.lua begins
-- decides all others. A request is written only after all of its keys have been decided.
--
-- src/scripts.ts puts the modules in the place of `-- DECIDE`, since a function would cost time in every call.
-- KEYS     the key of each policy of each request, one request after the other
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[2]  the call: 'c<number>;<ttl margin ms>;<u32 from which incarnations are counted>;<1 for the server's clock>'
-- ARGV[3…6]  what the module uses of the first policy. For one request of one policy and of cost 1 that is all. Else follow
--          the number of policies; '1' where a key occurs more than once; for several policies the number of its module and what the module uses,
--          of each; and, where not all are 1, the cost of each key
-- Returns  one request alone: { report, now }; else { ARGV[2], now, a report for each key, and, if there were any, how many stored values
--          could not be read }
--
-- A module is given key, units, limit, window, third, fourth and now. It sets x and y of the report, or leaves x nil where the state is not usual;
-- denied; and what usual/write.lua writes.
local limit, window, third, fourth, values, first_value = ARGV[3] + 0, ARGV[4] + 0, ARGV[5], ARGV[6], nil, 0

-- One request of one policy and of cost 1 is decided before anything else is defined.
if not ARGV[7] then
  local at, i, key, units = 0, 1, KEYS[1], 1
  local x, y, denied, write, where, data, ttl, drops
  -- DECIDE
  if x then
    -- include usual/write
    if x >= 67108864 or y >= 134217728 then return { { denied and 0 or 1, x, y, 0 }, now } end
    local packed = x * 134217728 + y
    return { denied and -1 - packed or packed, now }
  end
end

-- include report
-- DEFINE
local width, repeats = (ARGV[7] or 1) + 0, ARGV[8] == '1'

local first_cost, costs = width > 1 and 9 + 5 * width or 9, nil
if ARGV[first_cost] then
  costs = {}
  for i = first_cost, #ARGV do costs[i - first_cost + 1] = tonumber(ARGV[i]) end
end

third = tonumber(third) or third
local kinds, limits, windows, thirds, fourths = { 1 }, { limit }, { window }, { third }, { fourth }
if width > 1 then
  for i = 1, width do
    local from = 4 + 5 * i
    kinds[i], limits[i], windows[i] = ARGV[from] + 0, ARGV[from + 1] + 0, ARGV[from + 2] + 0
    thirds[i], fourths[i] = tonumber(ARGV[from + 3]) or ARGV[from + 3], ARGV[from + 4]
  end
end

local reply, size = { ARGV[2], now }, 2
local decide_row, unreadable_values, policies
local function decide_unusual(at)
  if not decide_row then
    decide_row, unreadable_values = define_whole(reply)
    policies = {}
    for i = 1, width do
      local policy, third = policy_of(kinds[i]), thirds[i]
      local block_for, factor, most = tostring(third):match('^(.+);(.+);(.+)$')
      policy.limit, policy.window, policy.capacity = limits[i], windows[i], policy.has_level and third or limits[i]
      -- What only some algorithms read means nothing to the others.
      policy.aligned, policy.resolution, policy.ttl = third == 1, third, fourths[i]
      policy.block_for, policy.block_factor, policy.block_most = tonumber(block_for), tonumber(factor), tonumber(most)
      policy.count_denied = block_for ~= nil
      policies[i] = policy
    end
  end
  decide_row('consume', policies, at, costs, at)
end

local xs, ys, writes, wheres, datas, ttls, drop_heads = {}, {}, {}, {}, {}, {}, {}
local values_end = 0
for at = 0, #KEYS - width, width do
  if READS_STRINGS and not repeats and at >= values_end then
    -- Arguments have to fit the stack of Lua.
    values_end = min(#KEYS, at + max(1, floor(256 / width)) * width)
    values, first_value = redis_call('MGET', unpack(KEYS, at + 1, values_end)), at
  end
  local is_usual = true
  for i = 1, width do
    local key, units, kind, is_second = KEYS[at + i], 1, 1, false
    if costs then units = costs[at + i] end
    if width > 1 then
      kind, limit, window, third, fourth = kinds[i], limits[i], windows[i], thirds[i], fourths[i]
      if repeats then
        for j = at + 1, at + i - 1 do is_second = is_second or KEYS[j] == key end
      end
    end
    local x, y, denied, write, where, data, ttl, drops
    if units and units > 0 and not is_second then
      -- DECIDE
    end
    if not x or (denied and width > 1) then
      is_usual = false
      break
    end
    if width > 1 then
      xs[i], ys[i], writes[i], wheres[i], datas[i], ttls[i], drop_heads[i] = x, y, write, where, data, ttl, drops
    else
      -- include usual/write
      reply[size + 1] = report_of(not denied, x, y)
    end
  end
  if not is_usual then
    decide_unusual(at)
  elseif width > 1 then
    for i = 1, width do
      local key, write, where, data, ttl, drops = KEYS[at + i], writes[i], wheres[i], datas[i], ttls[i], drop_heads[i]
      -- include usual/write
      reply[size + i] = report_of(true, xs[i], ys[i])
    end
  end
  size = size + width
end
if unreadable_values and unreadable_values() > 0 then reply[size + 1] = unreadable_values() end
return reply
