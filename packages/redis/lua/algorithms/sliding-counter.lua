-- sliding-counter: two adjacent windows; the earlier one counts by the share of it that the rolling window still covers.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms of the current window] [u56 current] [u56 previous]
do
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7I7', 25

  local function window_start(check, now)
    return now - now % check.window
  end

  local function current_at(cell, start)
    if cell.start == start then return cell.current end
    return 0
  end

  local function previous_at(cell, start, window)
    if cell.start == start then return cell.previous end
    if cell.start ~= nil and cell.start + window == start then return cell.current end
    return 0
  end

  -- How far a window must have elapsed until at most target of the units of the window before it still count.
  local function elapsed_until(window, units, target)
    if units <= target then return 0 end
    return window - ceil((target + 1) * window / units) + 1
  end

  local sliding_counter = {}
  algorithms['sliding-counter'] = sliding_counter

  function sliding_counter.load(key)
    local value, unreadable = read_string(key, VERSION, LENGTH)
    local cell = { key = key, current = 0, previous = 0, unreadable = unreadable }
    if value then
      local _, incarnation, start, current, previous = unpack_struct(FORMAT, value)
      cell.incarnation, cell.start, cell.current, cell.previous = incarnation, start, current, previous
    end
    return cell
  end

  function sliding_counter.settle(cell, check, now, keep)
    local start = window_start(check, now)
    if cell.start ~= nil and cell.start > start then
      cell.start = start
      cell.settled = true
    end
    if keep and cell.settled then cell.changed = true end
  end

  function sliding_counter.used(cell, check, now)
    local window = check.window
    local start = window_start(check, now)
    local left = window - (now - start)
    return current_at(cell, start) + floor(previous_at(cell, start, window) * left / window)
  end

  function sliding_counter.ms_until(cell, check, now, target)
    if sliding_counter.used(cell, check, now) <= target then return 0 end
    local window = check.window
    local start = window_start(check, now)
    local elapsed = now - start
    local current = current_at(cell, start)
    if current <= target then
      return elapsed_until(window, previous_at(cell, start, window), target - current) - elapsed
    end
    return window - elapsed + elapsed_until(window, current, target)
  end

  function sliding_counter.reset_ms(cell, check, now)
    return effective_window(sliding_counter, cell, check, now)
  end

  function sliding_counter.take(cell, check, now)
    local start = window_start(check, now)
    local previous = previous_at(cell, start, check.window)
    if cell.start ~= nil and now >= cell.start + 2 * check.window then cell.incarnation = nil end
    cell.current = min(current_at(cell, start) + check.cost, max_units(check.window))
    cell.previous = previous
    cell.start = start
    cell.incarnation = cell.incarnation or new_incarnation()
    cell.changed = true
    return start
  end

  function sliding_counter.give_back(cell, check, now, at)
    if cell.start ~= at or window_start(check, now) ~= at then return end
    cell.current = max(0, cell.current - check.cost)
    cell.changed = true
  end

  function sliding_counter.clear(cell)
    cell.incarnation, cell.start, cell.current, cell.previous = nil, nil, 0, 0
    cell.changed = true
  end

  function sliding_counter.save(cell, check, now)
    local ttl = cell.start and cell.start + 2 * check.window - now or 0
    if ttl <= 0 then
      redis.call('DEL', cell.key)
    else
      local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.current, cell.previous)
      write_string(cell, value, ttl + check.ttl_margin)
    end
  end
end
