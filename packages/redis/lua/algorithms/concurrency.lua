-- concurrency: requests in flight, each with a lease that expires if nobody renews it. The window
-- is how long a lease runs.
-- Value: a sorted set, readable with ZRANGE key 0 -1 WITHSCORES. A lease is '<number>:<units>',
--        scored with the ms of its end. '#' is scored with the units of all leases, below 0, so
--        that it comes first.
-- Usual states: usual/concurrency.lua, which reads and writes the same format.
define['concurrency'] = function()
  local concurrency, TOTAL = {}, '#'

  local function integer(number) return string.format('%.0f', number) end

  -- More units than the limit count no more than it.
  local function lease_name(policy, number, units)
    return integer(number) .. ':' .. integer(min(units, policy.limit))
  end

  -- All ends lie within one lease from now, or the clock was set back.
  local function late_leases(cell, policy)
    return redis_call('ZRANGEBYSCORE', cell.key, '(' .. integer(now + policy.window), '+inf')
  end

  -- Units of the leases that run, by the total and what has expired; nil where the members do not
  -- add up to leases and their total.
  local function running_units(key, members, expired)
    local used = -(tonumber(redis_call('ZSCORE', key, TOTAL)) or 0)
    if used < 1 or used > MAX_SAFE or used % 1 ~= 0 then return nil end
    for _, name in ipairs(expired) do used = used - (tonumber(name:match('^%d+:(%d+)$')) or MAX_SAFE) end
    local running = members - 1 - #expired
    -- Each lease holds a unit at least.
    if used < running or (used > 0) ~= (running > 0) then return nil end
    return used
  end

  function concurrency.load(cell, key, policy)
    cell.key, cell.incarnation, cell.exists, cell.repaired = key, 0, false, false
    cell.used, cell.detail, cell.expired, cell.is_foreign = 0, 0, nil, false
    local members = redis.pcall('ZCARD', key)
    if members == 0 then return end
    if type(members) == 'number' then
      local expired = redis_call('ZRANGEBYSCORE', key, '1', integer(now))
      local used = running_units(key, members, expired)
      if used then
        cell.used, cell.expired = used, expired
        cell.repaired = #late_leases(cell, policy) > 0
        return
      end
    end
    reject()
    cell.is_foreign = true
  end

  function concurrency.persist(cell, policy)
    for _, name in ipairs(late_leases(cell, policy)) do
      redis_call('ZADD', cell.key, 'XX', integer(now + policy.window), name)
    end
  end

  -- Removes what has expired, and writes the total.
  local function write_total(cell, policy)
    if cell.expired and #cell.expired > 0 then
      redis_call('ZREMRANGEBYSCORE', cell.key, '1', integer(now))
      cell.expired = nil
    end
    if cell.used <= 0 then return redis_call('DEL', cell.key) end
    redis_call('ZADD', cell.key, integer(-cell.used), TOTAL)
    redis_call('PEXPIRE', cell.key, policy.window + ttl_margin)
  end

  function concurrency.fits(cell, policy) return policy.limit - cell.used end

  function concurrency.take(cell, policy, units)
    if cell.is_foreign then
      redis_call('DEL', cell.key)
      cell.is_foreign = false
    end
    local number
    repeat
      -- include parts/lease-number
      number, cell.detail = lease_number, lease_detail
      -- Units whose sum would not be exact any more get no lease.
      if cell.used + min(units, policy.limit) > MAX_SAFE then return end
    until not redis_call('ZSCORE', cell.key, lease_name(policy, number, units))
    redis_call('ZADD', cell.key, integer(now + policy.window), lease_name(policy, number, units))
    cell.used = cell.used + min(units, policy.limit)
    write_total(cell, policy)
  end

  function concurrency.give_back(cell, policy, units, number)
    local name = lease_name(policy, number, units)
    local ends_at = not cell.is_foreign and redis_call('ZSCORE', cell.key, name)
    if not ends_at then return end
    redis_call('ZREM', cell.key, name)
    if tonumber(ends_at) > now then cell.used = cell.used - min(units, policy.limit) end
    write_total(cell, policy)
  end

  function concurrency.renew(cell, policy, units, number)
    local name = lease_name(policy, number, units)
    local ends_at = not cell.is_foreign and redis_call('ZSCORE', cell.key, name)
    if not ends_at or tonumber(ends_at) <= now then return false end
    redis_call('ZADD', cell.key, integer(now + policy.window), name)
    redis_call('PEXPIRE', cell.key, policy.window + ttl_margin)
    return true
  end

  function concurrency.clear(cell)
    redis_call('DEL', cell.key)
    cell.used, cell.expired = 0, nil
  end

  -- The units that count, and the part of the number of a new lease that lease-number.lua tells.
  function concurrency.report(cell) return cell.used, cell.detail end

  return concurrency
end
