-- Decides any call: requests of several operations and lists of policies, in order, each all or nothing; later ones see what earlier ones took.
--
-- KEYS     the keys of all requests, one after the other
-- ARGV[1]  the call, as ARGV[4] of usual-one.lua
-- ARGV[2]  milliseconds of the caller's clock; '' for the server's own
-- ARGV[3]  the requests as JSON, which src/calls/general-call.ts writes:
--   { policies: [{ algorithm, limit, window, capacity, resolution, aligned, is_short, count_denied, block_for?, block_factor?, block_most? }],
--     groups: [{ op, shape, rows, costs?, receipts? }] }
--   shape      the policies of each request of the group, numbers from 1
--   rows       how many requests the group has; each has a key for each policy of the shape
--   costs      of each key of each request; left out where all are 1
--   receipts   of each key of each request: time, incarnation, and units that were given back before
-- Returns  { ARGV[1], now, a report for each key, and, if there were any, how many stored values could not be read }
local caller_ms, call_text = ARGV[2], ARGV[1]
-- include shared
-- include names
-- DEFINE
local call = cjson.decode(ARGV[3])
local reply = { call_text, now }
local decide_row, unreadable_values = define_whole(reply)

local first_key = 0
for _, group in ipairs(call.groups) do
  local shape = {}
  for i, number in ipairs(group.shape) do shape[i] = call.policies[number] end
  for row = 0, group.rows - 1 do
    decide_row(group.op, shape, first_key, group.costs, row * #shape, group.receipts)
    first_key = first_key + #shape
  end
end

if unreadable_values() > 0 then reply[#reply + 1] = unreadable_values() end
return reply
