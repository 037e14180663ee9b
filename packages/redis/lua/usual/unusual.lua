-- Defines how a request is decided that has a key in no usual state, with the functions that
-- prelude.lua begins. They are defined when the first such request is met.
if not decide_request then
  -- include names
  -- DEFINE
  decide_request, unreadable_values = define_general(reply)
  policies = {}
  for i = 1, width do
    local policy, limit, window, setting = policy_of(fields[4 * i - 3]), fields[4 * i - 2], fields[4 * i - 1], fields[4 * i]
    local block_for, factor, most = tostring(setting):match('^(.+);(.+);(.+)$')
    policy.limit, policy.window = limit, window
    policy.capacity = policy.has_level and (setting or limit * window) or limit
    -- Only some algorithms read these.
    policy.aligned, policy.resolution = setting == 1, setting or 1
    policy.block_for, policy.block_factor, policy.block_most = tonumber(block_for), tonumber(factor), tonumber(most)
    policies[i] = policy
  end
end
