-- Starts a change that must not be made late. Removes its last argument: the time, in ms of the
-- server's clock, from which the change is rejected.
local deadline_ms, clock = table.remove(ARGV) + 0, redis.call('TIME')
if not (clock[1] * 1000 + clock[2] / 1000 < deadline_ms) then
  return redis.error_reply('LATE the deadline of this change has passed')
end
