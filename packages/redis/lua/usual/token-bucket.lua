-- The usual states of a bucket on the server's clock: absent, draining, full, and empty again. Formats: algorithms/token-bucket.lua.
-- With another clock the time to live is set every time, which is left to the whole algorithm.
local READS_STRING = true
local limit, window, capacity, margin

local function use(new_limit, new_window, new_capacity, new_margin)
  limit, window, capacity, margin = new_limit, new_window, new_capacity, new_margin
end

local function consume(key, units, value)
  local raised = units * window
  if value then
    if #value ~= 32 then return nil end
    local version, incarnation, at, level, ends_at, lives_until = unpack_struct('<BI4I6I7I7I7', value)
    if version ~= 1 or incarnation > 0 or at > now or level > 9007199254740991 then return nil end
    if at >= ends_at or ends_at - at > level or ends_at > lives_until then return nil end
    if now < ends_at then
      level = max(0, level - (now - at) * limit)
      -- Written under another limit: how long a request of a queue is held is then read from both numbers.
      if ends_at - now ~= ceil(level / limit) then return nil end
      if level + raised > capacity then return level, ends_at - now, false, true end
      level = level + raised
      ends_at = now + ceil(level / limit)
      if ends_at > lives_until then return nil end
      redis_call('SETRANGE', key, '5', pack('<I6I7I7', now, level, ends_at))
      return level, ends_at - now, value
    end
  end
  if raised > capacity then return nil end
  local ttl = ceil(raised / limit)
  -- With a quarter more than it needs, a key can be written several times before that has to be prolonged.
  local life = ttl + ceil(ttl / 4)
  local anew = pack('<BI4I6I7I7I7', 1, 0, now, raised, now + ttl, now + life)
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', life + margin)
  elseif not redis_call('SET', key, anew, 'PX', life + margin, 'NX') then return nil end
  return raised, ttl, value
end
