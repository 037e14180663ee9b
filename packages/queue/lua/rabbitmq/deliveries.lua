-- Each message of a job carries a number: only the message with the newest one counts. `<job id>:<number>` stands in a sorted set from the
-- time when it is to be published until the server has confirmed it.
local function deliver_again(key, unpublished, id, now)
  local number = redis.call('HINCRBY', key, 'delivery', 1)
  redis.call('HSET', key, 'deliveredAt', now)
  redis.call('ZADD', unpublished, now, id .. ':' .. number)
  return number
end
