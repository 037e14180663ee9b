-- Counts jobs in and out per second: `i<second>` and `o<second>` in one hash, with `since`, the time when the queue was last empty.
local flow_seconds = 30

local function count_flow(direction)
  local second = math.floor(now / 1000)
  if redis.call('HINCRBY', flow, direction .. second, 1) > 1 then return end
  if redis.call('HLEN', flow) <= 3 * flow_seconds then return end
  for _, field in ipairs(redis.call('HKEYS', flow)) do
    local old = tonumber(string.sub(field, 2))
    if old and old < second - flow_seconds then redis.call('HDEL', flow, field) end
  end
end

-- Keeps or restores the place and the record of an open job.
local function hold_place()
  if redis.call('ZADD', places, 'NX', job.enqueuedAt, place) == 0 then return end
  redis.call('HINCRBY', identities, job.identity, 1)
  if job.record and redis.call('GET', record) == says then redis.call('PEXPIRE', record, job.openMs) end
end

-- Returns 1 if the place existed.
local function give_back(given, identity)
  redis.call('ZREM', expiries, given)
  if redis.call('ZREM', places, given) == 0 then return 0 end
  if redis.call('HINCRBY', identities, identity, -1) <= 0 then redis.call('HDEL', identities, identity) end
  return 1
end

-- The id after the first colon of a place or a record.
local function id_in(member) return string.sub(member, string.find(member, ':', 1, true) + 1) end

-- Runs that started and never ended.
local function interrupted_of(starts, ended) return math.max(0, tonumber(starts or '0') - tonumber(ended or '0')) end
