-- The times of a sliding log that all keys of a policy share.
-- A unit taken now is recorded at `stamp`: rounded up, so that it never leaves too early. Units at `cut` or before count no more. The time to live is
-- set with the first unit of each quarter window, which begins at `share_start`: a key outlives its newest unit by that much.
local function set_log_times(policy)
  local window, beyond = policy.window, now % policy.resolution
  local stamp = beyond == 0 and now or now - beyond + policy.resolution
  policy.stamp, policy.cut = stamp, now - window
  policy.share_start = floor(stamp * 4 / window) * window / 4
end
