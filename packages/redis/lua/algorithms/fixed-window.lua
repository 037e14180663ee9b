-- fixed-window: a count since the window's first charge, or since a multiple of the window when aligned to the clock.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms] [u56 count]
do
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18

  local function is_open(cell, check, now)
    return cell.start ~= nil and now < cell.start + check.window
  end

  local function start_at(check, now)
    if check.aligned then return now - now % check.window end
    return now
  end

  local fixed_window = {}
  algorithms['fixed-window'] = fixed_window

  function fixed_window.load(key)
    local value, unreadable = read_string(key, VERSION, LENGTH)
    local cell = { key = key, count = 0, unreadable = unreadable }
    if value then
      local _, incarnation, start, count = unpack_struct(FORMAT, value)
      cell.incarnation, cell.start, cell.count = incarnation, start, count
    end
    return cell
  end

  function fixed_window.settle(cell, check, now, keep)
    if cell.start ~= nil and cell.start > now then
      cell.start = start_at(check, now)
      cell.settled = true
    end
    if keep and cell.settled then cell.changed = true end
  end

  function fixed_window.used(cell, check, now)
    if is_open(cell, check, now) then return cell.count end
    return 0
  end

  function fixed_window.ms_until(cell, check, now, target)
    if fixed_window.used(cell, check, now) <= target then return 0 end
    return cell.start + check.window - now
  end

  function fixed_window.reset_ms(cell, check, now)
    if check.limit > 0 and is_open(cell, check, now) then return cell.start + check.window - now end
    return check.window
  end

  function fixed_window.take(cell, check, now)
    if not is_open(cell, check, now) then
      cell.start = start_at(check, now)
      cell.count = 0
      cell.incarnation = nil
    end
    cell.incarnation = cell.incarnation or new_incarnation()
    cell.count = min(cell.count + check.cost, max_units(check.window))
    cell.changed = true
    return cell.start
  end

  function fixed_window.give_back(cell, check, now, at)
    if cell.start ~= at or not is_open(cell, check, now) then return end
    cell.count = max(0, cell.count - check.cost)
    cell.changed = true
  end

  function fixed_window.clear(cell)
    cell.incarnation, cell.start, cell.count = nil, nil, 0
    cell.changed = true
  end

  function fixed_window.save(cell, check, now)
    if not is_open(cell, check, now) then
      redis.call('DEL', cell.key)
    else
      local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.count)
      write_string(cell, value, cell.start + check.window - now + check.ttl_margin)
    end
  end
end
