-- The packed log of sliding-log where the limit is low: one string with the time of every unit, oldest first.
-- Value: [u8 version = 3] [u32 incarnation] [u48 base ms]  then  [u32 ms after the base] each
-- It is read whole, and mostly only appended to; what is dead is cut off when it is a quarter of what lives.
if needed['sliding-log'] then
  local VERSION, HEADER, HEADER_SIZE = 3, '<BI4I6', 11
  local HEADER_AND_FIRST = '<BI4I6I4'
  local OFFSET, OFFSET_SIZE, LONGEST = '<I4', 4, 4294967295

  -- Whether a log fits: times within half of what an offset can tell, so that a base lasts as long as a window.
  function plain.has_short_log(policy)
    return policy.limit <= 128 and policy.window <= 2147483648
  end

  -- The first unit after an offset, and its offset, among `count` of which the last one is: found by halving.
  local function first_after(value, count, offset)
    local low, high, found = 0, count - 1, nil
    -- No more than a quarter is dead, unless the key was idle.
    local middle = floor(count / 5) + 2
    if middle >= high then middle = floor((low + high) / 2) end
    while low < high do
      local at = unpack_struct(OFFSET, value, HEADER_SIZE + 1 + middle * OFFSET_SIZE)
      if at > offset then high, found = middle, at else low = middle + 1 end
      middle = floor((low + high) / 2)
    end
    found = found or unpack_struct(OFFSET, value, HEADER_SIZE + 1 + low * OFFSET_SIZE)
    return low, found
  end

  -- One unit of a log that has room, which most requests meet: as read, take and report would do it, without a cell.
  function plain.short_log(policy)
    local limit, window, stamp, cutoff, ttl = policy.limit, policy.window, policy.stamp, policy.cut, policy.ttl
    return function(key)
      local value = redis_pcall('GET', key)
      if value == false and limit > 0 then
        redis_call('SET', key, pack(HEADER_AND_FIRST, VERSION, 0, stamp, 0), 'PX', ttl)
        return 1, stamp + window - now, false
      end
      local length = type(value) == 'string' and #value or 0
      local count, head = (length - HEADER_SIZE) / OFFSET_SIZE, 0
      if count < 1 or count % 1 ~= 0 then return nil end
      local version, incarnation, base, first = unpack_struct(HEADER_AND_FIRST, value)
      local last = unpack_struct(OFFSET, value, length - OFFSET_SIZE + 1)
      local offset, cut = stamp - base, cutoff - base
      if version ~= VERSION or incarnation > 0 or last > offset or last <= cut or offset > LONGEST then return nil end
      if first <= cut then head, first = first_after(value, count, cut) end
      local used = count - head + 1
      if used > limit then return nil end
      local suffix = pack(OFFSET, offset)
      if head > used / 4 + 2 then
        local live = value:sub(1, HEADER_SIZE) .. value:sub(HEADER_SIZE + 1 + head * OFFSET_SIZE) .. suffix
        redis_call('SET', key, live, 'PX', ttl)
      else
        redis_call('APPEND', key, suffix)
        if base + last < policy.share_start then redis_call('PEXPIRE', key, ttl) end
      end
      return used, base + first + window - now, value
    end, restore_string
  end

  define['short-log'] = function()
    local short_log = {}

    -- The time of unit number i, from 0, after the base.
    local function offset_at(value, i)
      return (unpack_struct(OFFSET, value, HEADER_SIZE + 1 + i * OFFSET_SIZE))
    end

    local function measure(cell, policy, first_offset)
      local value, base, count = cell.value, cell.base, cell.count
      local cut = policy.cut - base
      if first_offset > cut then
        cell.head, cell.used, cell.first = 0, count, base + first_offset
      elseif cell.last <= cut then
        cell.head, cell.used, cell.first = count, 0, nil
      else
        local head, offset = first_after(value, count, cut)
        cell.head, cell.used, cell.first = head, count - head, base + offset
      end
    end

    -- Times that lie after now count as now.
    local function clamp(cell, policy)
      local base = min(cell.base, policy.stamp)
      local parts = { pack(HEADER, VERSION, cell.incarnation, base) }
      for i = 0, cell.count - 1 do
        parts[i + 2] = pack(OFFSET, min(cell.base + offset_at(cell.value, i), policy.stamp) - base)
      end
      cell.value, cell.base, cell.last = table.concat(parts), base, policy.stamp - base
      cell.repaired = true
    end

    -- Reads a value; false where something else is stored.
    function short_log.read(cell, policy, value)
      cell.layout = short_log
      local length = #value
      local count = (length - HEADER_SIZE) / OFFSET_SIZE
      if count < 1 or count % 1 ~= 0 then
        cell.incarnation = read_mark(value) or 0
        return cell.incarnation > 0
      end
      local version, incarnation, base, first_offset = unpack_struct(HEADER_AND_FIRST, value)
      if version ~= VERSION then return false end
      local last = unpack_struct(OFFSET, value, length - OFFSET_SIZE + 1)
      cell.value, cell.incarnation, cell.base, cell.count, cell.last = value, incarnation, base, count, last
      if base + last > policy.stamp then
        clamp(cell, policy)
        first_offset = offset_at(cell.value, 0)
      end
      measure(cell, policy, first_offset)
      return true
    end

    -- Writes the units from number `from` on, and more units of one time behind them.
    local function rewrite(cell, policy, from, suffix)
      local value = cell.value or redis_call('GET', cell.key)
      value = value:sub(1, HEADER_SIZE) .. value:sub(HEADER_SIZE + 1 + from * OFFSET_SIZE) .. suffix
      cell.value, cell.count = value, (#value - HEADER_SIZE) / OFFSET_SIZE
      redis_call('SET', cell.key, value, 'PX', policy.ttl)
    end

    -- Offsets from a later base, where the present one is too long ago.
    local function rebase(cell)
      local value = cell.value or redis_call('GET', cell.key)
      local parts, base = {}, cell.first
      parts[1] = pack(HEADER, VERSION, cell.incarnation, base)
      for i = cell.head, cell.count - 1 do
        parts[#parts + 1] = pack(OFFSET, cell.base + offset_at(value, i) - base)
      end
      cell.value = table.concat(parts)
      cell.last = cell.base + cell.last - base
      cell.base, cell.count, cell.head = base, cell.count - cell.head, 0
      -- Rewritten by whoever asked for it.
      return true
    end

    function short_log.persist(cell, policy)
      rewrite(cell, policy, 0, '')
    end

    function short_log.take(cell, policy, units)
      local stamp, used = policy.stamp, cell.used
      if used == 0 then
        cell.value = pack(HEADER, VERSION, cell.incarnation, stamp) .. pack(OFFSET, 0):rep(units)
        cell.base, cell.count, cell.head, cell.last = stamp, units, 0, 0
        cell.used, cell.first, cell.exists = units, stamp, true
        redis_call('SET', cell.key, cell.value, 'PX', policy.ttl)
        return
      end
      local is_rebased = stamp - cell.base > LONGEST and rebase(cell)
      local offset = stamp - cell.base
      local suffix = pack(OFFSET, offset)
      if units > 1 then suffix = suffix:rep(units) end
      local excess = used + units - policy.limit
      if excess < 0 then excess = 0 end
      local dead = cell.head + excess
      if excess > 0 or dead > used / 4 + 2 or is_rebased then
        rewrite(cell, policy, dead, suffix)
        cell.head = 0
        cell.first = cell.base + offset_at(cell.value, 0)
      else
        redis_call('APPEND', cell.key, suffix)
        if cell.base + cell.last < policy.share_start then redis_call('PEXPIRE', cell.key, policy.ttl) end
        cell.value, cell.count = nil, cell.count + units
      end
      cell.used = used + units - excess
      cell.last = offset
    end

    function short_log.give_back(cell, policy, units, at)
      local value = cell.value or redis_call('GET', cell.key)
      local from = cell.head
      while from < cell.count and cell.base + offset_at(value, from) < at do from = from + 1 end
      local given = 0
      while given < units and from + given < cell.count and cell.base + offset_at(value, from + given) == at do
        given = given + 1
      end
      if given == 0 then return end
      cell.value = value:sub(1, HEADER_SIZE + from * OFFSET_SIZE) .. value:sub(HEADER_SIZE + 1 + (from + given) * OFFSET_SIZE)
      cell.count, cell.used = cell.count - given, cell.used - given
      if cell.used == 0 then return end
      cell.last = offset_at(cell.value, cell.count - 1)
      redis_call('SET', cell.key, cell.value, 'KEEPTTL')
      measure(cell, policy, offset_at(cell.value, 0))
    end

    function short_log.time_of(cell, _policy, k)
      cell.value = cell.value or redis_call('GET', cell.key)
      return cell.base + offset_at(cell.value, cell.head + k - 1)
    end

    -- Times and running totals of the live units, for another layout to take over.
    function short_log.entries(cell)
      local value, entries = cell.value or redis_call('GET', cell.key), {}
      for i = cell.head, cell.count - 1 do
        local time = cell.base + offset_at(value, i)
        local last = entries[#entries]
        if last and last.time == time then
          last.total = last.total + 1
        else
          entries[#entries + 1] = { time = time, total = (last and last.total or 0) + 1 }
        end
      end
      return entries
    end

    return short_log
  end
end
