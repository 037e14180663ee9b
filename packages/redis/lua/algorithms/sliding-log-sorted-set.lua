-- sliding-log as a textbook sorted set: one member per unit, scored with its time. To read it with
-- redis-cli:
--   ZRANGE key 0 -1 WITHSCORES
-- Member: <incarnation>:<time ms>:<number within its millisecond>, padded so that equal
--         scores sort by number.
-- It gives the same answers as the packed layouts, at 60 to 145 bytes per unit instead of 9 to 11.
define['layouts'] = function()
  local UNITS_PER_ZADD, layouts, set_log = 1000, {}, {}

  local function newest(key)
    local found = redis_call('ZRANGE', key, -1, -1, 'WITHSCORES')
    local incarnation, number = (found[1] or ''):match('^(%d+):%-?%d+:(%d+)$')
    incarnation, number = tonumber(incarnation), tonumber(number)
    if not incarnation or incarnation > 4294967295 or number > MAX_SAFE then return nil end
    return incarnation, tonumber(found[2]), number
  end

  local function score(time) return string.format('%.0f', time) end

  local function after(time) return '(' .. score(time) end

  local function add(cell, policy, units)
    local _, newest_time, newest_number = newest(cell.key)
    local number = newest_time == policy.stamp and newest_number + 1 or 0
    local done = 0
    while done < units do
      local members = {}
      for i = done, min(units, done + UNITS_PER_ZADD) - 1 do
        members[#members + 1] = policy.stamp
        members[#members + 1] = string.format('%010d:%.0f:%016.0f', cell.incarnation, policy.stamp, number + i)
      end
      redis_call('ZADD', cell.key, unpack(members))
      done = done + UNITS_PER_ZADD
    end
    redis_call('PEXPIRE', cell.key, policy.ttl)
  end

  -- Live units are at the end.
  function set_log.time_of(cell, policy, k)
    local rank = k - 1 - cell.used
    local found = redis_call('ZRANGE', cell.key, rank, rank, 'WITHSCORES')
    return min(tonumber(found[2]), policy.stamp)
  end

  local function measure(cell, policy)
    cell.used = redis_call('ZCOUNT', cell.key, after(policy.dead_until), '+inf')
    if cell.used > 0 then cell.first = set_log.time_of(cell, policy, 1) end
  end

  function layouts.read(cell, key, policy)
    cell.layout = set_log
    local count, incarnation, time = redis.pcall('ZCARD', key), nil, nil
    if count == 0 then
      cell.exists = false
      return
    end
    local value = type(count) == 'table' and redis.pcall('GET', key)
    if not value then
      incarnation, time = newest(key)
    elseif type(value) == 'string' then
      incarnation = read_mark(value)
    end
    if not incarnation then return reject() end
    cell.incarnation = incarnation
    if time then measure(cell, policy) end
    cell.repaired = cell.used > 0 and time > policy.stamp
  end

  function set_log.persist(cell, policy)
    local ahead = redis_call('ZCOUNT', cell.key, after(policy.stamp), '+inf')
    redis_call('ZREMRANGEBYSCORE', cell.key, after(policy.stamp), '+inf')
    add(cell, policy, ahead)
  end

  function set_log.take(cell, policy, units, most)
    -- An expired log, a mark, or not a log.
    if cell.used == 0 and cell.exists then redis_call('DEL', cell.key) end
    cell.exists = true
    redis_call('ZREMRANGEBYSCORE', cell.key, '-inf', score(policy.dead_until))
    add(cell, policy, units)
    redis_call('ZREMRANGEBYRANK', cell.key, 0, -most - 1)
    measure(cell, policy)
  end

  function set_log.give_back(cell, policy, units, at)
    local taken = redis_call('ZCOUNT', cell.key, score(at), score(at))
    local given = min(units, taken)
    if given == 0 then return end
    local first = redis_call('ZCOUNT', cell.key, '-inf', score(at)) - given
    redis_call('ZREMRANGEBYRANK', cell.key, first, first + given - 1)
    measure(cell, policy)
  end

  return layouts
end
