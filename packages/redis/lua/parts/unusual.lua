-- Defines how a request is decided that has a key in no usual state, with the functions that
-- prelude.lua begins. They are defined when the first such request is met.
if not decide_request then
  -- DEFINE
  decide_request, unreadable_values = define_general(reply)
  policies = { POLICIES }
  for i = 1, #policies do
    local policy, limit, window, setting = policies[i], fields[3 * i - 2], fields[3 * i - 1], fields[3 * i]
    local block_for, factor, most = tostring(setting):match('^(.+);(.+);(.+)$')
    policy.limit, policy.window = limit, window
    policy.capacity = policy.has_level and (setting or limit * window) or limit
    -- Only some algorithms read these.
    policy.aligned, policy.resolution = setting == 1, setting or 1
    policy.block_for, policy.block_factor, policy.block_most = tonumber(block_for), tonumber(factor), tonumber(most)
  end
end
