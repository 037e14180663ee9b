-- Gives new numbers to deliveries that nobody has confirmed for long: their process died before it published them, or their message was lost.
-- A message that is there all the same stands for nothing then.
--
-- KEYS[1]  jobs that are to be delivered    KEYS[2]  places
-- ARGV[1]  deliveries before this, ms since 1970    ARGV[2]  now, ms    ARGV[3]  how many    ARGV[4]  prefix of the keys of jobs
-- ARGV[5]  1 if the server's queue is empty: then confirmed messages are gone too, of jobs that wait and are due
-- Returns  job id, number of the delivery and when the job is due, for each
local before, now = tonumber(ARGV[1]), ARGV[2]
if ARGV[5] == '1' then
  for _, place in ipairs(redis.call('ZRANGE', KEYS[2], 0, ARGV[3])) do
    local id = string.sub(place, string.find(place, ':', 1, true) + 1)
    local number, token, at, due = unpack(redis.call('HMGET', ARGV[4] .. id, 'delivery', 'token', 'deliveredAt', 'dueAt'))
    if number and not token and math.max(tonumber(at or '0'), tonumber(due or '0')) < before then
      redis.call('ZADD', KEYS[1], 'NX', 0, id .. ':' .. number)
    end
  end
end

local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
  local split = string.find(member, ':', 1, true)
  local id, number = string.sub(member, 1, split - 1), string.sub(member, split + 1)
  local key = ARGV[4] .. id
  local newest, finished, token, due = unpack(redis.call('HMGET', key, 'delivery', 'finishedOn', 'token', 'dueAt'))
  redis.call('ZREM', KEYS[1], member)
  if newest == number and not finished and not token then
    found[#found + 1] = id
    found[#found + 1] = deliver_again(key, KEYS[1], id, now)
    found[#found + 1] = due or '0'
  end
end
return found
