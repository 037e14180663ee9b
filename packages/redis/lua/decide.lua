-- Decides any call: requests of several operations and lists of policies, in order, each all or nothing; later ones see what earlier ones took.
--
-- KEYS     the keys of all requests, one after the other
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[2]  the call: 'c<number>;<ttl margin ms>;<u32 from which incarnations are counted>;<1 for the server's clock>'
-- ARGV[3]  the requests as JSON, which src/general-call.ts writes:
--   { policies: [{ algorithm, usual?, fields?, limit, window, capacity, resolution, ttl, aligned, is_short, count_denied,
--                  block_for?, block_factor?, block_most? }],
--     groups: [{ op, shape, rows, repeats?, costs?, receipts? }] }
--   usual      the module that decides its keys in a usual state, and the four numbers that it uses; left out where there is none
--   shape      the policies of each request of the group, numbers from 1
--   rows       how many requests the group has; each has a key for each policy of the shape
--   repeats    whether a key occurs more than once in the group
--   costs      of each key of each request; left out where all are 1
--   receipts   of each key of each request: time, incarnation, and units that were given back before
-- Returns  { ARGV[2], now, a report for each key, and, if there were any, how many stored values could not be read }
local call = cjson.decode(ARGV[3])
local policies, reply = call.policies, { ARGV[2], now }

for _, policy in ipairs(policies) do
  local open_module, fields = usuals[policy.usual or ''], policy.fields
  if open_module then
    local use
    use, policy.consume, policy.undo, policy.reads_string = open_module()
    use(fields[1], fields[2], fields[3], fields[4])
  end
end

local decide_row, unreadable_values

-- The most values that are read at once: arguments have to fit the stack of Lua.
local MOST_READ = 256

-- Consumes a request as far as all of its keys are in a usual state and have room; else it changes nothing.
local xs, ys, befores = {}, {}, {}
local function consume_usually(shape, first_key, costs, at, values, first_value)
  local width = #shape
  for i = 1, width do
    local policy, key, value = shape[i], KEYS[first_key + i], nil
    local units = 1
    if costs then units = costs[at + i] end
    if policy.reads_string then
      if values then value = values[first_value + i] else value = redis_pcall('GET', key) end
    end
    local x, y, before, denied = nil, nil, nil, nil
    if type(units) == 'number' and units > 0 and type(value) ~= 'table' then x, y, before, denied = policy.consume(key, units, value) end
    if denied or not x then
      for j = i - 1, 1, -1 do shape[j].undo(KEYS[first_key + j], befores[j]) end
      return false
    end
    xs[i], ys[i], befores[i] = x, y, before
  end
  for i = 1, width do reply[#reply + 1] = report_of(true, xs[i], ys[i]) end
  return true
end

-- Whether requests can be consumed so, and whether their values can be read before any of them is decided.
local function may_be_usual(group, shape)
  local is_readable = not group.repeats
  for i = 1, #shape do
    if not shape[i].consume then return false, false end
    is_readable = is_readable and shape[i].reads_string
  end
  return group.op == 'consume', is_readable
end

local first_key = 0
for _, group in ipairs(call.groups) do
  local shape = {}
  for i, number in ipairs(group.shape) do shape[i] = policies[number] end
  local width, at, costs = #shape, 0, group.costs
  local is_usual, is_readable = may_be_usual(group, shape)
  local values, first_value, rows_read = nil, 0, 0
  for row = 1, group.rows do
    if is_usual and is_readable and row > rows_read then
      local rows = min(group.rows - rows_read, max(1, floor(MOST_READ / width)))
      values, first_value = redis_call('MGET', unpack(KEYS, first_key + 1, first_key + rows * width)), 0
      rows_read = rows_read + rows
    end
    if not (is_usual and consume_usually(shape, first_key, costs, at, values, first_value)) then
      if not decide_row then decide_row, unreadable_values = define_whole(reply) end
      decide_row(group.op, shape, first_key, costs, at, group.receipts)
    end
    first_key, first_value = first_key + width, first_value + width
    at = at + width
  end
end

if unreadable_values and unreadable_values() > 0 then reply[#reply + 1] = unreadable_values() end
return reply
