-- The packed layout of sliding-log for low limits: one string with the time of every unit, oldest
-- first.
-- Value: [u8 version = 3] [u32 incarnation] [u48 base ms]
--        then for each unit [u24, or u32, ms after the base] [u8 hint]
-- The string is read in full, and in usual states mostly only appended to. Dead units are removed
-- when there are a quarter as many as live ones. The hint of the last unit is the number of units
-- known to be dead when it was taken. Hints are verified before use.
-- Usual states: usual/sliding-log-string.lua, which reads and writes the same format.
define['short-log'] = function()
  local VERSION, HEADER, HEADER_SIZE = 3, '<BI4I6', 11
  -- The most units recorded (core: maxRecorded of a limit of 128), and the same with dead units.
  local MAX_RECORDED, MAX_UNITS = 257, 512
  -- The format of times depends on the window, which is part of every key.
  local SHORT_WINDOW = 4194304

  local short_log = {}
  local SHORT = { entry = '<I3B', size = 4, max_offset = 16777215 }
  local LONG = { entry = '<I4B', size = 5, max_offset = 4294967295 }

  local function form_of(policy) return policy.window <= SHORT_WINDOW and SHORT or LONG end

  -- The time of unit number i, from 0. Times after now count as now.
  local function time_at(cell, policy, i)
    local form = cell.form
    return min(cell.base + unpack_struct(form.entry, cell.value, HEADER_SIZE + 1 + i * form.size), policy.stamp)
  end

  -- The units from one number up to, not including, another.
  local function part(cell, from, to)
    local size = cell.form.size
    return cell.value:sub(HEADER_SIZE + 1 + from * size, HEADER_SIZE + to * size)
  end

  -- The units from a number on, as offsets from a new base.
  local function rebase(cell, policy, base, from)
    local parts = {}
    for i = from, cell.count - 1 do
      parts[#parts + 1] = pack(cell.form.entry, time_at(cell, policy, i) - base, 0)
    end
    cell.base = base
    return table.concat(parts)
  end

  -- The number of the first unit after a time.
  local function first_after(cell, policy, time)
    local low, high = 0, time_at(cell, policy, 0) > time and 0 or cell.count
    while low < high do
      local middle = floor((low + high) / 2)
      if time_at(cell, policy, middle) > time then high = middle else low = middle + 1 end
    end
    return low
  end

  local function measure(cell, policy)
    cell.head = first_after(cell, policy, policy.dead_until)
    cell.used, cell.first = cell.count - cell.head, nil
    if cell.used > 0 then cell.first = time_at(cell, policy, cell.head) end
  end

  local function write(cell, policy, units)
    cell.value, cell.count = pack(HEADER, VERSION, cell.incarnation, cell.base) .. units, #units / cell.form.size
    redis_call('SET', cell.key, cell.value, 'PX', policy.ttl)
    measure(cell, policy)
  end

  -- Reads a value; false if something else is stored.
  function short_log.read(cell, policy, value)
    local form = form_of(policy)
    local count = (#value - HEADER_SIZE) / form.size
    if count < 1 or count > MAX_UNITS or count % 1 ~= 0 then
      cell.incarnation = read_mark(value) or 0
      return cell.incarnation > 0
    end
    local version, incarnation, base = unpack_struct(HEADER, value)
    if version ~= VERSION then return false end
    cell.form, cell.value, cell.incarnation, cell.base, cell.count = form, value, incarnation, base, count
    cell.repaired = base + unpack_struct(form.entry, value, #value - form.size + 1) > policy.stamp
    measure(cell, policy)
    return true
  end

  function short_log.persist(cell, policy)
    write(cell, policy, rebase(cell, policy, min(cell.base, policy.stamp), 0))
  end

  function short_log.take(cell, policy, units, most)
    local form, stamp, kept = form_of(policy), policy.stamp, ''
    -- Only held units can be more than a string holds.
    if cell.used > 0 and not policy.is_short or min(cell.used + units, most) > MAX_RECORDED then
      return require_part('layouts').grow(cell, policy, units, most)
    end
    if cell.used > 0 then
      local from = cell.head + max(0, cell.used + units - most)
      if stamp - cell.base > form.max_offset then
        kept = rebase(cell, policy, cell.first, from)
      else
        kept = part(cell, from, cell.count)
      end
    else
      cell.form, cell.base, cell.exists = form, stamp, true
    end
    write(cell, policy, kept .. pack(form.entry, stamp - cell.base, 0):rep(units))
  end

  function short_log.give_back(cell, policy, units, at)
    local from = first_after(cell, policy, at - 1)
    local to = min(first_after(cell, policy, at), from + units)
    if to == from then return end
    if to - from == cell.used then cell.used = 0
    else write(cell, policy, part(cell, cell.head, from) .. part(cell, to, cell.count)) end
  end

  function short_log.time_of(cell, policy, k) return time_at(cell, policy, cell.head + k - 1) end

  -- Times and running totals of the live units, for conversion to the other layout.
  function short_log.entries(cell, policy)
    local entries = {}
    for i = 1, cell.used do
      local time, size = short_log.time_of(cell, policy, i), #entries
      if entries[size - 1] ~= time then size = size + 2 end
      entries[size - 1], entries[size] = time, i
    end
    return entries
  end

  return short_log
end
