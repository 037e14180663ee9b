-- Decides a call whose requests consume by one list of policies, all of one algorithm and layout: a module of usual/ decides keys in a usual state,
-- and what prelude.lua begins decides all others.
--
-- KEYS     the key of each policy of each request, one request after the other
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[2]  the call: 'c<number>;<ttl margin ms>;<u32 from which incarnations are counted>;<1 for the server's clock>'
-- ARGV[3…6]  what the module uses of the first policy. For one request of one policy and of cost 1 that is all. Else follow
--          the number of policies; '1' where a key occurs more than once; what is used of the further policies; and, where not all are 1,
--          the cost of each key
-- Returns  one request alone: { report, now }; else { ARGV[2], now, a report for each key, and, if there were any, how many stored values
--          could not be read }
local width, repeats = tonumber(ARGV[7] or 1), ARGV[8] == '1'
local first_cost, costs = 5 + 4 * width, nil
if ARGV[first_cost] then
  costs = {}
  for i = first_cost, #ARGV do costs[i - first_cost + 1] = tonumber(ARGV[i]) end
end

-- Where the fields of each policy stand: those of the first one before the number of policies.
local function fields_at(i)
  return i == 1 and 3 or 5 + 4 * (i - 1)
end

-- How to consume and undo for each policy.
local consumes, undos = { consume }, {}
if width > 1 then
  for i = 1, width do
    local use_one, consume_one, undo_one = open_module()
    local at = fields_at(i)
    use_one(tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
    consumes[i], undos[i] = consume_one, undo_one
  end
end

local reply, size = { ARGV[2], now }, 2
local decide_row, unreadable_values, policies
local function decide_unusual(at)
  if not decide_row then
    decide_row, unreadable_values = define_whole(reply)
    policies = {}
    for i = 1, width do
      local first = fields_at(i)
      local limit, third = tonumber(ARGV[first]), tonumber(ARGV[first + 2])
      -- What only some algorithms read means nothing to the others.
      policies[i] = {
        algorithm = ALGORITHM, is_short = IS_SHORT, limit = limit, window = tonumber(ARGV[first + 1]),
        capacity = HAS_LEVEL and third or limit, aligned = third == 1, resolution = third, ttl = ARGV[first + 3],
      }
    end
  end
  decide_row('consume', policies, at, costs, at)
end

local xs, ys, befores = {}, {}, {}
-- Consumes a request of which all keys are in a usual state; else it changes nothing, and returns false.
local function consume_row(at, values, first_value)
  for i = 1, width do
    local key, value, x, y, before, denied = KEYS[at + i], nil, nil, nil, nil, nil
    if READS_STRING then
      if values then value = values[first_value + i] else value = redis_pcall('GET', key) end
    end
    local units = 1
    if costs then units = costs[at + i] end
    if units and units > 0 and type(value) ~= 'table' then x, y, before, denied = consumes[i](key, units, value) end
    if denied and width == 1 then
      size = size + 1
      reply[size] = report_of(false, x, y)
      return true
    end
    if denied or not x then
      for j = i - 1, 1, -1 do undos[j](KEYS[at + j], befores[j]) end
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
  if READS_STRING and not repeats and at >= values_end then
    -- Arguments have to fit the stack of Lua.
    values_end = min(#KEYS, at + max(1, floor(256 / width)) * width)
    values, first_value = redis_call('MGET', unpack(KEYS, at + 1, values_end)), at
  end
  if not consume_row(at, values, at - first_value) then
    decide_unusual(at)
    size = #reply
  end
end
if unreadable_values and unreadable_values() > 0 then reply[size + 1] = unreadable_values() end
return reply
