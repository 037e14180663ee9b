-- Decides a request of which a key is in no usual state, by what prelude.lua begins. Nothing of that is defined before it is needed.
if not decide_row then
  -- include names
  -- DEFINE
  decide_row, unreadable_values = define_whole(reply)
  policies = {}
  for i = 1, width do
    local policy, limit, window, setting = policy_of(fields[4 * i - 3]), fields[4 * i - 2], fields[4 * i - 1], fields[4 * i]
    local block_for, factor, most = tostring(setting):match('^(.+);(.+);(.+)$')
    policy.limit, policy.window = limit, window
    policy.capacity = policy.has_level and (setting or limit * window) or limit
    -- What only some algorithms read means nothing to the others.
    policy.aligned, policy.resolution = setting == 1, setting or 1
    policy.block_for, policy.block_factor, policy.block_most = tonumber(block_for), tonumber(factor), tonumber(most)
    policy.count_denied = block_for ~= nil
    policies[i] = policy
  end
end
decide_row('consume', policies, row_start, costs, row_start)
