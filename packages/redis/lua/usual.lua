-- Decides a call whose requests consume by one list of policies, all of one algorithm and layout: the module `usual` decides keys in a usual state,
-- and what prelude.lua begins decides all others.
--
-- KEYS     the key of each policy of each request, one request after the other
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[2]  the call: 'c<number>;<ttl margin ms>;<u32 from which incarnations are counted>;<1 for the server's clock>'
-- ARGV[3…] what the module reads of the first policy. For one request of one policy and of cost 1 that is all. Else follow
--          the number of policies; '1' where a key occurs more than once; what the module reads of the further policies; and, where not all are 1,
--          the cost of each key
-- Returns  one request alone: { report, now }; else { ARGV[2], now, a report for each key, and, if there were any, how many stored values
--          could not be read }
local fields, consume, undo, reads_string = usual.fields, usual.consume, usual.undo, usual.reads_string

local function policy_at(at)
  local policy = usual.read_policy(at)
  usual.prepare(policy)
  return policy
end

local first_policy = policy_at(3)
if #ARGV == 2 + fields and #KEYS == 1 then
  local key, value = KEYS[1], nil
  if reads_string then value = redis_pcall('GET', key) end
  if type(value) ~= 'table' then
    local x, y, _, denied = consume(first_policy, key, 1, value)
    if x then return { report_of(not denied, x, y), now } end
  end
end

local reply = { ARGV[2], now }
local width = tonumber(ARGV[3 + fields] or 1)
local repeats = ARGV[4 + fields] == '1'
local policies = { first_policy }
for i = 2, width do policies[i] = policy_at(5 + fields + (i - 2) * fields) end
local first_cost = 5 + fields * width
local costs
if ARGV[first_cost] then
  costs = {}
  for i = first_cost, #ARGV do costs[i - first_cost + 1] = tonumber(ARGV[i]) end
end

-- The most values that are read at once: arguments have to fit the stack of Lua.
local MOST_READ = 256

local decide_row, unreadable_values
local function decide_unusual(at)
  if not decide_row then
    decide_row, unreadable_values = define_whole(reply)
    for i = 1, width do
      policies[i].algorithm, policies[i].is_short = ALGORITHM, IS_SHORT
      policies[i].capacity = policies[i].capacity or policies[i].limit
    end
  end
  decide_row('consume', policies, at, costs, at)
end

local size = 2
local xs, ys, befores = {}, {}, {}
-- Consumes a request of which all keys are in a usual state; else it changes nothing, and returns false.
local function consume_row(at, values, first_value)
  for i = 1, width do
    local key, value, x, y, before, denied = KEYS[at + i], nil, nil, nil, nil, nil
    if reads_string then
      if values then value = values[first_value + i] else value = redis_pcall('GET', key) end
    end
    local units = costs and costs[at + i] or 1
    if units > 0 and type(value) ~= 'table' then x, y, before, denied = consume(policies[i], key, units, value) end
    if denied and width == 1 then
      size = size + 1
      reply[size] = report_of(false, x, y)
      return true
    end
    if denied or not x then
      for j = i - 1, 1, -1 do undo(KEYS[at + j], befores[j]) end
      return false
    end
    xs[i], ys[i], befores[i] = x, y, before
  end
  for i = 1, width do reply[size + i] = report_of(true, xs[i], ys[i]) end
  size = size + width
  return true
end

local values, first_value, values_end = nil, 0, 0
for at = 0, #KEYS - width, width do
  if reads_string and not repeats and at >= values_end then
    values_end = min(#KEYS, at + max(1, floor(MOST_READ / width)) * width)
    values, first_value = redis_call('MGET', unpack(KEYS, at + 1, values_end)), at
  end
  if not consume_row(at, values, at - first_value) then
    decide_unusual(at)
    size = #reply
  end
end
if unreadable_values and unreadable_values() > 0 then reply[size + 1] = unreadable_values() end
return reply
