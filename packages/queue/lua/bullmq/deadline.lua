-- Ends a script whose deadline has passed. Removes the last argument: the deadline, in ms of the server's clock, or ''.
local deadline = table.remove(ARGV)
if deadline ~= '' then
  local time = redis.call('TIME')
  if not (time[1] * 1000 + time[2] / 1000 < tonumber(deadline)) then
    return redis.error_reply('LATE the deadline of this change has passed')
  end
end
