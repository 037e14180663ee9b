-- fixed-window: counts from the window's first charge, from a multiple of the window if it is
-- aligned to the clock (setting 1), or from a midnight. For calendar windows, the setting is a
-- string of four numbers: the starts of the previous, the current and the next two windows.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms] [u56 count]
-- Usual states: usual/fixed-window.lua, which reads and writes the same format.
define['fixed-window'] = function()
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18

  local fixed_window = {}

  -- The last start of a calendar window up to `time`, and the first one after it.
  local function bounds_at(policy, time)
    local before, after
    for bound in policy.setting:gmatch('%d+') do
      bound = tonumber(bound)
      if bound <= time then before = bound else after = after or bound end
    end
    return before, after
  end

  local function start_of(policy)
    if type(policy.setting) ~= 'string' then return policy.setting == 1 and now - now % policy.window or now end
    local start, finish = bounds_at(policy, now)
    if start and finish then return start end
    error('its clock and that of the process differ by more than a window', 0)
  end

  local function end_of(policy, start)
    if type(policy.setting) ~= 'string' then return start + policy.window end
    local before, after = bounds_at(policy, start)
    return after or before + policy.window
  end

  function fixed_window.load(cell, key, policy)
    policy.most = max_units(type(policy.setting) == 'string' and 1 or policy.window)
    policy.start = start_of(policy)
    cell.start, cell.count = nil, 0
    local value = read_string(cell, key, VERSION, LENGTH)
    if not value then return end
    local _, incarnation, start, count = unpack_struct(FORMAT, value)
    if count > policy.most then return reject() end
    -- An aligned window ends only once, even if the clock is set back to before its start.
    local latest = policy.setting and end_of(policy, policy.start) or now
    if start > latest then start, cell.repaired = latest, true end
    if now < end_of(policy, start) then
      cell.incarnation, cell.start, cell.count = incarnation, start, count
    end
  end

  function fixed_window.persist(cell, policy)
    local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.count)
    write_string(cell.key, value, end_of(policy, cell.start) - now)
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
    leave_mark(cell, end_of(policy, now) - now)
    cell.start, cell.count = nil, 0
  end

  -- The count, and ms since the window opened, plus 1; 0 if none is open.
  function fixed_window.report(cell)
    if not cell.start then return cell.count, 0, 0 end
    local time = max(cell.start, now)
    return cell.count, time - cell.start + 1, time - now
  end

  return fixed_window
end
