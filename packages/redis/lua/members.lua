-- Stores what processes publish about themselves, with an expiry by the server's clock.
-- KEYS[1] hash of process id → '<expiry in ms> <text>'
-- ARGV[1] milliseconds of the caller's clock; '' for the server's own
-- ARGV[2] id, ARGV[3] text, ARGV[4] TTL in ms, 0 when a process stops; absent to read
-- Returns alternating ids and texts that have not expired.
local caller_ms = ARGV[1]
-- include parts/shared
if ARGV[2] then
  local id, text, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
  if ttl == 0 then
    redis.call('HDEL', KEYS[1], id)
  else
    redis.call('HSET', KEYS[1], id, string.format('%.0f', now + ttl) .. ' ' .. text)
    if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
  end
end

local found, members = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
  local expires, text = string.match(found[i + 1], '^(%d+) (.*)$')
  if expires and tonumber(expires) > now then
    members[#members + 1], members[#members + 2] = found[i], text
  else
    redis.call('HDEL', KEYS[1], found[i])
  end
end
return members
