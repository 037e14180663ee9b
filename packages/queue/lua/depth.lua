-- Gauges of a queue: depth, running and dead jobs, age of the oldest, and rates.
--
-- Returns  { depth, running, dead, enqueue time of the oldest or '', ms covered by the rates, jobs in, jobs out }
local oldest = redis.call('ZRANGE', places, 0, 0, 'WITHSCORES')[2] or ''
local since = math.max(now - flow_seconds * 1000, tonumber(redis.call('HGET', flow, 'since') or now))
local first = math.floor(since / 1000)
local into, out = 0, 0
local fields = redis.call('HGETALL', flow)
for i = 1, #fields, 2 do
  local direction, second = string.sub(fields[i], 1, 1), tonumber(string.sub(fields[i], 2))
  if second and second >= first then
    if direction == 'i' then into = into + fields[i + 1] end
    if direction == 'o' then out = out + fields[i + 1] end
  end
end
return {
  redis.call('ZCARD', places), count_running(), redis.call('ZCARD', prefix .. 'failed'),
  oldest, math.max(0, now - since), into, out,
}
