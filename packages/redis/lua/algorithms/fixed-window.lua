-- fixed-window: a count since the window's first charge, or since a multiple of the window if it is
-- aligned to the clock.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms] [u56 count]
-- Usual states: usual/fixed-window.lua, which reads and writes the same format.
define['fixed-window'] = function()
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18

  local fixed_window = {}

  function fixed_window.load(cell, key, policy)
    policy.most = max_units(policy.window)
    local is_aligned = policy.setting == 1
    policy.start = is_aligned and now - now % policy.window or now
    cell.start, cell.count = nil, 0
    local value = read_string(cell, key, VERSION, LENGTH)
    if not value then return end
    local _, incarnation, start, count = unpack_struct(FORMAT, value)
    if count > policy.most then return reject() end
    -- A window of the clock ends once, also if the clock is set back to before its start.
    local latest = is_aligned and policy.start + policy.window or now
    if start > latest then start, cell.repaired = latest, true end
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

  function fixed_window.fits(cell, policy) return policy.limit - cell.count end

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
    if not cell.start then return cell.count, 0, 0 end
    local time = max(cell.start, now)
    return cell.count, time - cell.start + 1, time - now
  end

  return fixed_window
end
