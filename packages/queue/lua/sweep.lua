-- Takes places back whose job was never added, since the process that asked for them died in between, or has ended. Such places are among
-- the oldest sooner or later, since jobs run in their order.
--
-- KEYS[1]  places    KEYS[2]  identities
-- ARGV[1]  places that are older than this, ms since 1970, are looked at    ARGV[2]  how many    ARGV[3]  prefix of BullMQ's job keys
-- Returns  how many were taken back
local taken = 0
for _, place in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  local split = string.find(place, ':', 1, true)
  local identity, id = string.sub(place, 1, split - 1), string.sub(place, split + 1)
  local job = ARGV[3] .. id
  if redis.call('EXISTS', job) == 0 or redis.call('HEXISTS', job, 'finishedOn') == 1 then
    redis.call('ZREM', KEYS[1], place)
    if redis.call('HINCRBY', KEYS[2], identity, -1) <= 0 then redis.call('HDEL', KEYS[2], identity) end
    taken = taken + 1
  end
end
return taken
