-- Gauges of a queue: depth, running and dead jobs, age of the oldest, and rates.
--
-- KEYS[1]  places    KEYS[2]  flow    KEYS[3]  BullMQ's active list    KEYS[4]  BullMQ's failed set
-- ARGV[1]  now, ms
-- Returns  { depth, running, dead, enqueueing time of the oldest, or '', ms that is looked back, jobs in, jobs out }
local places, flow, now = KEYS[1], KEYS[2], tonumber(ARGV[1])
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
  redis.call('ZCARD', places), redis.call('LLEN', KEYS[3]), redis.call('ZCARD', KEYS[4]),
  oldest, math.max(0, now - since), into, out,
}
