-- concurrency: requests in flight, each with a lease that expires unless it is renewed. The window
-- is the lifetime of a lease.
-- Value: a sorted set, readable with ZRANGE key 0 -1 WITHSCORES. A lease is '<number>:<units>',
--        scored with its end in ms. '#' is scored with minus the units of all leases, so
--        that it comes first.
-- Usual states: usual/concurrency.lua, which reads and writes the same format.
define['concurrency'] = function()
  local concurrency, TOTAL = {}, '#'

  local function integer(number) return string.format('%.0f', number) end

  -- Units beyond the limit are not counted.
  local function lease_name(policy, number, units)
    return integer(number) .. ':' .. integer(min(units, policy.limit))
  end

  -- Leases whose end is more than a window away: the clock was set back.
  local function late_leases(cell, policy)
    return redis_call('ZRANGEBYSCORE', cell.key, '(' .. integer(now + policy.window), '+inf')
  end

  -- Units of the running leases: the total minus expired ones; nil if the members are not leases
  -- plus their total.
  local function running_units(key, members, expired)
    local used = -(tonumber(redis_call('ZSCORE', key, TOTAL)) or 0)
    if used < 1 or used > MAX_SAFE or used % 1 ~= 0 then return nil end
    for _, name in ipairs(expired) do used = used - (tonumber(name:match('^%d+:(%d+)$')) or MAX_SAFE) end
    local running = members - 1 - #expired
    -- Each lease holds at least one unit.
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

  -- Removes expired leases, and writes the total.
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
      -- No lease for units whose sum would no longer be exact.
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

  -- The units that count, and the part of a new lease's number from lease-number.lua.
  function concurrency.report(cell) return cell.used, cell.detail end

  return concurrency
end
