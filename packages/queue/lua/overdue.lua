-- Finds the jobs that have waited longer than they were worth, and have never begun.
--
-- KEYS[1]  expiries
-- ARGV[1]  now, ms    ARGV[2]  how many    ARGV[3]  prefix of the keys of jobs
-- Returns  ids of jobs
local ids = {}
for _, place in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  local id = string.sub(place, string.find(place, ':', 1, true) + 1)
  if redis.call('EXISTS', ARGV[3] .. id) == 1 then
    ids[#ids + 1] = id
  else
    redis.call('ZREM', KEYS[1], place)
  end
end
return ids
