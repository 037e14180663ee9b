-- Gives the place of a job back. Returns 1 if it had one.
local function give_back(places, identities, expiries, place, identity)
  redis.call('ZREM', expiries, place)
  if redis.call('ZREM', places, place) == 0 then return 0 end
  if redis.call('HINCRBY', identities, identity, -1) <= 0 then redis.call('HDEL', identities, identity) end
  return 1
end

-- From the end of its job on the record of an idempotency key counts for so long; not that of another job.
local function end_record(record, id, retention_ms)
  local known = redis.call('GET', record)
  if known and string.sub(known, -#id) == id then redis.call('PEXPIRE', record, retention_ms) end
end
