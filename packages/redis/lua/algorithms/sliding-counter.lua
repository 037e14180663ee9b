-- sliding-counter: two adjacent windows. The earlier one counts by the share of it that the rolling
-- window still covers.
-- Value: [u8 version = 1] [u32 incarnation] [u48 start ms of the current window]
--        [u56 current] [u56 previous]
-- Usual states: usual/sliding-counter.lua, which reads and writes the same format.
do
  local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7I7', 25

  define['sliding-counter'] = function()
    local sliding_counter = {}

    function sliding_counter.load(cell, key, policy)
      policy.most = max_units(policy.window)
      policy.start = now - now % policy.window
      cell.current, cell.previous, cell.is_current = 0, 0, false
      local value = read_string(cell, key, VERSION, LENGTH)
      if not value then return end
      local _, incarnation, start, current, previous = unpack_struct(FORMAT, value)
      if current > policy.most or previous > policy.most then return reject() end
      if start > policy.start then
        start = policy.start
        cell.repaired = true
      end
      if start == policy.start then
        cell.incarnation, cell.current, cell.previous = incarnation, current, previous
        cell.is_current = true
      elseif start + policy.window == policy.start then
        cell.incarnation, cell.previous = incarnation, current
      end
    end

    function sliding_counter.persist(cell, policy)
      local value = pack(FORMAT, VERSION, cell.incarnation, policy.start, cell.current, cell.previous)
      write_string(cell.key, value, policy.start + 2 * policy.window - now)
      cell.is_current = true
    end

    -- The time to live was set with the first charge of the window.
    local function write_current(cell)
      redis_call('SETRANGE', cell.key, '11', pack('<I7', cell.current))
    end

    function sliding_counter.fits(cell, policy)
      local left = policy.window - (now - policy.start)
      return policy.capacity - cell.current - floor(cell.previous * left / policy.window)
    end

    function sliding_counter.take(cell, policy, units)
      cell.current = min(cell.current + units, policy.most)
      if cell.is_current then return write_current(cell) end
      sliding_counter.persist(cell, policy)
    end

    function sliding_counter.give_back(cell, policy, units, at)
      if not cell.is_current or policy.start ~= at then return end
      cell.current = units_left(cell.current, units, policy)
      write_current(cell)
    end

    function sliding_counter.clear(cell, policy)
      leave_mark(cell, 2 * policy.window)
      cell.is_current, cell.current, cell.previous = false, 0, 0
    end

    function sliding_counter.report(cell)
      return cell.current, cell.previous
    end

    return sliding_counter
  end
end
