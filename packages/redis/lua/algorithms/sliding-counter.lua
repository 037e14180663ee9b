-- sliding-counter: two adjacent windows. The previous one counts in proportion to its overlap with
-- the rolling window.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms of the current window]
--        [u56 current] [u56 previous]
-- Usual states: usual/sliding-counter.lua, which reads and writes the same format.
define['sliding-counter'] = function()
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7I7', 25

  local sliding_counter = {}

  function sliding_counter.load(cell, key, policy)
    policy.most = max_units(policy.window)
    local this = now - now % policy.window
    cell.start, cell.current, cell.previous, cell.is_current = this, 0, 0, false
    local value = read_string(cell, key, VERSION, LENGTH)
    if not value then return end
    local _, incarnation, start, current, previous = unpack_struct(FORMAT, value)
    if current > policy.most or previous > policy.most then return reject() end
    -- Its time never goes back: otherwise the previous window would fade twice.
    local latest = this + policy.window
    if start > latest then start, cell.repaired = latest, true end
    if start >= this then
      cell.incarnation, cell.current, cell.previous = incarnation, current, previous
      cell.start, cell.is_current = start, true
    elseif start + policy.window == this then
      cell.incarnation, cell.previous = incarnation, current
    end
  end

  function sliding_counter.persist(cell, policy)
    local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.current, cell.previous)
    write_string(cell.key, value, cell.start + 2 * policy.window - now)
    cell.is_current = true
  end

  -- The time to live was set with the first charge of the window.
  local function write_current(cell)
    redis_call('SETRANGE', cell.key, '11', pack('<I7', cell.current))
  end

  function sliding_counter.fits(cell, policy)
    local left = policy.window - max(0, now - cell.start)
    return policy.limit - cell.current - floor(cell.previous * left / policy.window)
  end

  function sliding_counter.take(cell, policy, units)
    cell.current = min(cell.current + units, policy.most)
    if cell.is_current then return write_current(cell) end
    sliding_counter.persist(cell, policy)
  end

  function sliding_counter.give_back(cell, policy, units, at)
    if not cell.is_current or cell.start ~= at then return end
    cell.current = units_left(cell.current, units, policy)
    write_current(cell)
  end

  function sliding_counter.clear(cell, policy)
    leave_mark(cell, 2 * policy.window)
    cell.is_current, cell.current, cell.previous = false, 0, 0
  end

  function sliding_counter.report(cell)
    return cell.current, cell.previous, max(0, cell.start - now)
  end

  return sliding_counter
end
