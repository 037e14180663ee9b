-- Finds jobs that expired while they waited and never started.
--
-- args.count  maximum number
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
