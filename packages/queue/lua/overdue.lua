-- Finds the jobs that have waited longer than they were worth, and have never begun.
--
-- args.count  how many
-- Returns  ids of jobs
local ids = {}
for _, each in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, args.count)) do
  local waiting = id_in(each)
  if redis.call('EXISTS', prefix .. waiting) == 1 then
    ids[#ids + 1] = waiting
  else
    redis.call('ZREM', expiries, each)
  end
end
return ids
