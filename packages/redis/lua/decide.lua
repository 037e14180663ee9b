-- Decides any call: requests with different operations and policies, in order, each all or nothing.
-- A request sees the units of earlier ones.
--
-- KEYS     the keys of all requests, one request after the other; last the sender's key, if any
-- ARGV[1]  the call, as in usual-call.lua
-- ARGV[2]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[3]  the requests as JSON, which src/calls/general-call.ts writes:
--   { policies: [{ algorithm, limit, window, setting?, is_short, count_denied }],
--     groups: [{ op, policies, requests, costs?, receipts? }], apart?, number? }
--   policies   of a group: the policies of each of its requests, as numbers from 1
--   requests   how many requests the group has; each has one key for each policy
--   costs      of each key; absent if all are 1
--   receipts   of each key: time, incarnation, and units given back earlier; or as in grants.lua
--   apart      the grants of the only key (held-units.lua), while its slot is migrating
--   number     of the call, if it gives units back and its client may send it again
-- ARGV[4]  absent, or the argument of deadline.lua
-- Returns  as usual-call.lua for several keys
local caller_ms, call_text = ARGV[2], ARGV[1]
if ARGV[4] then
  -- include deadline
end
-- include parts/shared
-- DEFINE
local call = cjson.decode(ARGV[3])
local reply = { call_text, now }
local decide_request, unreadable_values = define_general(reply)

-- Costs that are the same for all keys.
local function each_costs(number)
  return setmetatable({}, { __index = function() return number end })
end

for _, policy in ipairs(call.policies) do policy.apart = call.apart end
-- Calls of a sender arrive in order: a call that is not newer than the last is a repetition.
local first_key, is_repeat = 0, false
if call.number then
  local sender = KEYS[#KEYS]
  is_repeat = call.number <= tonumber(redis_call('GET', sender) or 0)
  if not is_repeat then redis_call('SET', sender, string.format('%.0f', call.number), 'PX', 3600000) end
end
for _, group in ipairs(call.groups) do
  -- The first call gave the units back. Charging nothing returns the remaining units.
  if is_repeat and group.op == 'refund' then group.op, group.costs = 'charge', each_costs(0) end
  local policies, costs = {}, group.costs or each_costs(1)
  for i, number in ipairs(group.policies) do policies[i] = call.policies[number] end
  for number = 0, group.requests - 1 do
    decide_request(group.op, policies, first_key, costs, number * #policies, group.receipts)
    first_key = first_key + #policies
  end
end

if unreadable_values() > 0 then reply[#reply + 1] = unreadable_values() end
return reply
