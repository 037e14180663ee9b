-- Takes places back whose job was never added, since the process that asked for them died in between, or has ended.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  expiries
-- ARGV[1]  places that are older than this, ms since 1970, are looked at    ARGV[2]  how many to skip    ARGV[3]  how many to look at
-- ARGV[4]  prefix of the keys of jobs
-- Returns  how many to skip next time, 0 at the end
local taken = 0
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', ARGV[2], ARGV[3])
for _, place in ipairs(found) do
  local split = string.find(place, ':', 1, true)
  local job = ARGV[4] .. string.sub(place, split + 1)
  if redis.call('EXISTS', job) == 0 or redis.call('HEXISTS', job, 'finishedOn') == 1 then
    taken = taken + give_back(KEYS[1], KEYS[2], KEYS[3], place, string.sub(place, 1, split - 1))
  end
end
if #found < tonumber(ARGV[3]) then return 0 end
return tonumber(ARGV[2]) + #found - taken
