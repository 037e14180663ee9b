-- fixed-window: a count since the window's first charge, or since a multiple of the window when aligned to the clock.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms] [u56 count]
if needed['fixed-window'] then
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18

  plain['fixed-window'] = function(policy)
    local limit, window = policy.limit, policy.window
    policy.start = policy.aligned and now - now % window or now
    policy.most = max_units(window)
    policy.reads_string = true
    local first_ttl = policy.start + window - now + ttl_margin
    return function(key, units, value)
      if not value then
        if units > limit then return nil end
        if not create_string(key, pack(FORMAT, VERSION, 0, policy.start, units), first_ttl) then return nil end
        return units, now - policy.start + 1, false
      end
      if #value ~= LENGTH then return nil end
      local version, incarnation, start, count = unpack_struct(FORMAT, value)
      count = count + units
      if version ~= VERSION or incarnation > 0 or start > now or now >= start + window or count > limit then return nil end
      redis_call('SETRANGE', key, '11', pack('<I7', count))
      return count, now - start + 1, value
    end, restore_string
  end

  define['fixed-window'] = function()
    local fixed_window = {}

    function fixed_window.load(cell, key, policy)
      cell.start, cell.count = nil, 0
      local value = read_string(cell, key, VERSION, LENGTH)
      if not value then return end
      local _, incarnation, start, count = unpack_struct(FORMAT, value)
      if count > policy.most then return reject() end
      if start > now then
        start = policy.start
        cell.repaired = true
      end
      if now < start + policy.window then
        cell.incarnation, cell.start, cell.count = incarnation, start, count
      end
    end

    function fixed_window.persist(cell, policy)
      local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.count)
      write_string(cell.key, value, cell.start + policy.window - now)
    end

    -- The time to live was set with the first charge of the window.
    local function write_count(cell)
      redis_call('SETRANGE', cell.key, '11', pack('<I7', cell.count))
    end

    function fixed_window.fits(cell, policy)
      return policy.capacity - cell.count
    end

    function fixed_window.take(cell, policy, units)
      cell.count = min(cell.count + units, policy.most)
      if cell.start then return write_count(cell) end
      cell.start = policy.start
      fixed_window.persist(cell, policy)
    end

    function fixed_window.give_back(cell, policy, units, at)
      if cell.start ~= at then return end
      cell.count = units_left(cell.count, units, policy)
      write_count(cell)
    end

    function fixed_window.clear(cell, policy)
      leave_mark(cell, policy.window)
      cell.start, cell.count = nil, 0
    end

    -- The count, and since when the window is open, from 1; 0 when none is.
    function fixed_window.report(cell)
      return cell.count, cell.start and now - cell.start + 1 or 0
    end

    return fixed_window
  end
end
