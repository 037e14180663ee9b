-- Counts the jobs that come and go in each second: `i<second>` and `o<second>` in one hash, and
-- `since`, the time at which the queue was last empty.
local flow_seconds = 30

local function count_flow(flow, direction, now)
  local second = math.floor(now / 1000)
  if redis.call('HINCRBY', flow, direction .. second, 1) > 1 then return end
  if redis.call('HLEN', flow) <= 3 * flow_seconds then return end
  for _, field in ipairs(redis.call('HKEYS', flow)) do
    local old = tonumber(string.sub(field, 2))
    if old and old < second - flow_seconds then redis.call('HDEL', flow, field) end
  end
end
