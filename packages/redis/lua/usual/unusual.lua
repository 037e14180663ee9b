-- Decides a request of which a key is in no usual state, by what prelude.lua begins. Nothing of that is defined before it is needed.
if not decide_row then
  -- include names
  -- DEFINE
  decide_row, unreadable_values = define_whole(reply)
  policies = {}
  for i = 1, width do
    local policy, limit, third = policy_of(fields[5 * i - 4]), fields[5 * i - 3], fields[5 * i - 1]
    local block_for, factor, most = tostring(third):match('^(.+);(.+);(.+)$')
    policy.limit, policy.window, policy.capacity = limit, fields[5 * i - 2], policy.has_level and third or limit
    -- What only some algorithms read means nothing to the others.
    policy.aligned, policy.resolution, policy.ttl = third == 1, third, fields[5 * i]
    policy.block_for, policy.block_factor, policy.block_most = tonumber(block_for), tonumber(factor), tonumber(most)
    policy.count_denied = block_for ~= nil
    policies[i] = policy
  end
end
decide_row('consume', policies, at, costs, at)
