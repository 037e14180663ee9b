-- Begins a change that must not be made late. Takes its last argument away: the time, in ms of the
-- server's clock, from which on the change is not made any more.
local deadline_ms, clock = table.remove(ARGV) + 0, redis.call('TIME')
if not (clock[1] * 1000 + clock[2] / 1000 < deadline_ms) then
  return redis.error_reply('LATE the deadline of this change has passed')
end
