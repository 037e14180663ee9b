-- Keeps what processes tell about themselves, each for a time by the server's clock.
-- KEYS[1] texts by the ids of processes; before each text the time (ms) at which it expires
-- ARGV[1] id, ARGV[2] text, ARGV[3] time to live in ms, 0 for a process that ends; no ARGV to ask
-- Returns ids and texts that have not expired, in turn; 1 for a process that tells about itself.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if ARGV[1] then
  local id, text, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
  if ttl == 0 then
    redis.call('HDEL', KEYS[1], id)
  else
    redis.call('HSET', KEYS[1], id, string.format('%.0f', now + ttl) .. ' ' .. text)
    if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
  end
  return 1
end

local found, members = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
  local expires, text = string.match(found[i + 1], '^(%d+) (.*)$')
  if expires and tonumber(expires) > now then
    members[#members + 1] = found[i]
    members[#members + 1] = text
  else
    redis.call('HDEL', KEYS[1], found[i])
  end
end
return members
