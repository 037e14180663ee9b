-- Defines how a request is decided that has a key in no usual state, with the functions that
-- prelude.lua begins. They are defined when the first such request is met.
if not decide_request then
  -- DEFINE
  decide_request, unreadable_values = define_general(reply)
  policies = { POLICIES }
  for i = 1, #policies do
    local policy = policies[i]
    policy.limit, policy.window, policy.setting = fields[3 * i - 2], fields[3 * i - 1], fields[3 * i]
  end
end
