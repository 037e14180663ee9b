-- The packed layout of sliding-log for low limits: one string with the time of every unit, oldest
-- first.
-- Value: [u8 version = 3] [u32 incarnation] [u48 base ms]
--        then for each unit [u24, or u32, ms after the base] [u8 hint]
-- The string is read in full, and mostly only appended to. Dead units are removed when there are a
-- quarter as many as live ones. The hint of the last unit is the number of units known to be dead
-- when it was taken. Hints are verified before use.
-- Usual states: usual/sliding-log-string.lua, which reads and writes the same format.
define['short-log'] = function()
  local VERSION, HEADER, HEADER_SIZE = 3, '<BI4I6', 11
  local MAX_HINT = 255
  -- The most units recorded (core: maxRecorded of a limit of 128), and the same with dead units.
  local MAX_RECORDED, MAX_UNITS = 257, 512
  -- The format of times depends on the window, which is part of every key.
  local SHORT_WINDOW = 4194304

  local short_log = {}
  local SHORT = { entry = '<I3B', size = 4, max_offset = 16777215 }
  local LONG = { entry = '<I4B', size = 5, max_offset = 4294967295 }

  local function form_of(policy) return policy.window <= SHORT_WINDOW and SHORT or LONG end

  -- The time of unit number i, from 0, after the base.
  local function offset_at(form, value, i)
    return (unpack_struct(form.entry, value, HEADER_SIZE + 1 + i * form.size))
  end

  -- A value without the units from number `from` up to, not including, `to`.
  local function without(form, value, from, to)
    return value:sub(1, HEADER_SIZE + from * form.size) .. value:sub(HEADER_SIZE + 1 + to * form.size)
  end

  -- The current value, even if it was appended to since it was read.
  local function value_of(cell) return cell.value or redis_call('GET', cell.key) end

  local function measure(cell, policy)
    local form, value, dead_offset = cell.form, cell.value, policy.dead_until - cell.base
    local head, high = 0, offset_at(form, value, 0) > dead_offset and 0 or cell.count
    while head < high do
      local middle = floor((head + high) / 2)
      if offset_at(form, value, middle) > dead_offset then high = middle else head = middle + 1 end
    end
    cell.head, cell.used, cell.first = head, cell.count - head, nil
    if cell.used > 0 then cell.first = cell.base + offset_at(form, value, head) end
  end

  -- Rewrites the offsets of units from number `from` for a new base. Times after now become now.
  local function rebase(cell, policy, base, from)
    local form, value, parts = cell.form, value_of(cell), { pack(HEADER, VERSION, cell.incarnation, base) }
    for i = from, cell.count - 1 do
      parts[#parts + 1] = pack(form.entry, min(cell.base + offset_at(form, value, i), policy.stamp) - base, 0)
    end
    cell.value, cell.last = table.concat(parts), min(cell.base + cell.last, policy.stamp) - base
    cell.base, cell.count, cell.head = base, cell.count - from, 0
  end

  -- Reads a value; false if something else is stored.
  function short_log.read(cell, policy, value)
    local length, form = #value, form_of(policy)
    local count = (length - HEADER_SIZE) / form.size
    cell.layout, cell.form = short_log, form
    if count < 1 or count > MAX_UNITS or count % 1 ~= 0 then
      cell.incarnation = read_mark(value) or 0
      return cell.incarnation > 0
    end
    local version, incarnation, base = unpack_struct(HEADER, value)
    if version ~= VERSION then return false end
    local last = offset_at(form, value, count - 1)
    cell.value, cell.incarnation, cell.base, cell.count, cell.last = value, incarnation, base, count, last
    cell.repaired = base + last > policy.stamp
    if cell.repaired then rebase(cell, policy, min(base, policy.stamp), 0) end
    measure(cell, policy)
    return true
  end

  -- Writes the units from number `from`, followed by more units of one time.
  local function rewrite(cell, policy, from, suffix)
    local value = without(cell.form, value_of(cell), 0, from) .. suffix
    cell.value, cell.count = value, (#value - HEADER_SIZE) / cell.form.size
    redis_call('SET', cell.key, value, 'PX', policy.ttl)
  end

  function short_log.persist(cell, policy) rewrite(cell, policy, 0, '') end

  function short_log.take(cell, policy, units, most)
    -- Only held units can be this many at once.
    if min(cell.used + units, most) > MAX_RECORDED then return require_part('layouts').grow(cell, policy, units, most) end
    local stamp, used, form = policy.stamp, cell.used, form_of(policy)
    if used == 0 then
      cell.form, cell.value = form, pack(HEADER, VERSION, cell.incarnation, stamp) .. pack(form.entry, 0, 0):rep(units)
      cell.base, cell.count, cell.head, cell.last = stamp, units, 0, 0
      cell.used, cell.first, cell.exists = units, stamp, true
      redis_call('SET', cell.key, cell.value, 'PX', policy.ttl)
      return
    end
    local is_rebased = stamp - cell.base > form.max_offset
    if is_rebased then rebase(cell, policy, cell.first, cell.head) end
    local offset = stamp - cell.base
    local excess = max(0, used + units - most)
    local dead = cell.head + excess
    if excess > 0 or dead > used / 4 + 2 or is_rebased then
      rewrite(cell, policy, dead, pack(form.entry, offset, 0):rep(units))
      cell.head = 0
      cell.first = cell.base + offset_at(form, cell.value, 0)
    else
      redis_call('APPEND', cell.key, pack(form.entry, offset, min(cell.head, MAX_HINT)):rep(units))
      if cell.base + cell.last < policy.share_start then redis_call('PEXPIRE', cell.key, policy.ttl) end
      cell.value, cell.count = nil, cell.count + units
    end
    cell.used = used + units - excess
    cell.last = offset
  end

  function short_log.give_back(cell, policy, units, at)
    local form, value, from, given = cell.form, value_of(cell), cell.head, 0
    while from < cell.count and cell.base + offset_at(form, value, from) < at do from = from + 1 end
    while given < units and from + given < cell.count and cell.base + offset_at(form, value, from + given) == at do
      given = given + 1
    end
    if given == 0 then return end
    cell.value = without(form, value, from, from + given)
    cell.count, cell.used = cell.count - given, cell.used - given
    if cell.used == 0 then return end
    cell.last = offset_at(form, cell.value, cell.count - 1)
    redis_call('SET', cell.key, cell.value, 'KEEPTTL')
    measure(cell, policy)
  end

  function short_log.time_of(cell, _policy, k)
    cell.value = value_of(cell)
    return cell.base + offset_at(cell.form, cell.value, cell.head + k - 1)
  end

  -- Times and running totals of the live units, for conversion to the other layout.
  function short_log.entries(cell)
    local value, entries = value_of(cell), {}
    for i = cell.head, cell.count - 1 do
      local time = cell.base + offset_at(cell.form, value, i)
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
