-- Decides requests with a key in an unusual state. The functions, which start in prelude.lua, are
-- defined for the first such request.
if not decide_request then
  -- DEFINE
  decide_request, unreadable_values = define_general(reply)
  policies = { POLICIES }
  for i = 1, #policies do
    local policy = policies[i]
    policy.limit, policy.window, policy.setting = fields[3 * i - 2], fields[3 * i - 1], fields[3 * i]
  end
end
