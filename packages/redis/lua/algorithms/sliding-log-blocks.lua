-- The packed layout of sliding-log for high limits: a list of blocks, oldest first. Only the blocks
-- at both ends and those visited by a search are read, never a whole long log.
-- Block: [u8 version] [u32 incarnation] [running total before the block]
--        then for each entry [u40 ms] [running total]
-- The units of an entry are its total minus the one before it. A search by totals answers any cost.
-- Totals wrap around: only differences matter, up to twice the limit. Version 1 has totals of 24
-- bits, for limits below 2^23, and version 2 of 48. Times are modulo 2^40 ms: stored times are
-- within 17 years of now.
-- Usual states: usual/sliding-log-blocks.lua, which reads and writes the same format.
define['block-log'] = function()
  local block_log = {}
  local TIME_SPAN = 1099511627776
  local LATEST = now + TIME_SPAN / 2

  local function form(version)
    -- include parts/block-layout
    return { version = version, header = header, entry = entry, both = both, size = size, full_size = full_size, span = span }
  end

  local FORMS = { form(1), form(2) }

  local function entries_in(form, block) return #block / form.size - 1 end

  local function form_of(block)
    local form = FORMS[block:byte()]
    local entries = form and entries_in(form, block) or 0
    return entries >= 1 and entries % 1 == 0 and form
  end

  -- Time and running total of entry number i, from 0, of a block; and the total before it, which
  -- the header or the last entry ends with.
  local function entry_in(form, block, i)
    local before, time, total = unpack_struct(form.both, block, 6 + i * form.size)
    return LATEST - (LATEST - time) % TIME_SPAN, total, before
  end

  local function last_of(form, block) return entry_in(form, block, #block / form.size - 2) end

  local function entry(form, time, total)
    return pack(form.entry, time % TIME_SPAN, total % form.span)
  end

  local function header(cell, before)
    return pack(cell.form.header, cell.form.version, cell.incarnation, before % cell.form.span)
  end

  local function count_of(cell)
    cell.count = cell.count or redis_call('LLEN', cell.key)
    return cell.count
  end

  -- Blocks are numbered from 0, like the list. An unreadable block is replaced by the tail, so that
  -- searches end.
  local function block_at(cell, index)
    if index == 0 then return cell.head_block end
    if index == count_of(cell) - 1 then return cell.tail_block end
    local block = redis_call('LINDEX', cell.key, index)
    if block and form_of(block) == cell.form then return block end
    if not cell.is_broken then reject() end
    cell.is_broken = true
    return cell.tail_block
  end

  -- Searches look for the first entry after a time, or for the entry with the k-th unit.
  local function is_after(_cell, wanted, time) return time > wanted end

  local function reaches(cell, wanted, _time, total)
    return (total - cell.base) % cell.form.span >= wanted
  end

  -- Block and number of the first entry for which `found` is true, from the first live one. One
  -- must exist, and `found` must be true for all entries after it.
  local function search(cell, found, wanted)
    local form, low, high, step = cell.form, cell.block, cell.block, 1
    while not found(cell, wanted, last_of(form, block_at(cell, high))) and high < count_of(cell) - 1 do
      low, high, step = high + 1, min(high + step, cell.count - 1), step * 2
    end
    while low < high do
      local middle = floor((low + high) / 2)
      if found(cell, wanted, last_of(form, block_at(cell, middle))) then high = middle else low = middle + 1 end
    end
    local block = block_at(cell, low)
    local from, to = low == cell.block and cell.entry or 0, entries_in(form, block) - 1
    while from < to do
      local middle = floor((from + to) / 2)
      if found(cell, wanted, entry_in(form, block, middle)) then to = middle else from = middle + 1 end
    end
    return low, from, block
  end

  function block_log.time_of(cell, policy, k)
    local _, i, block = search(cell, reaches, k)
    return min((entry_in(cell.form, block, i)), policy.stamp)
  end

  -- Finds the first live entry: its block, its number, its time, and the running total before it.
  local function measure(cell, policy, head, tail)
    cell.head_block, cell.tail_block = head, tail
    -- Blocks are unique.
    cell.count = head == tail and 1 or nil
    cell.last_time, cell.last_total = last_of(cell.form, tail)
    cell.used, cell.block, cell.entry = 0, 0, 0
    if cell.last_time <= policy.dead_until then return end
    local index, i, block = search(cell, is_after, policy.dead_until)
    local time, total, before = entry_in(cell.form, block, i)
    cell.block, cell.entry, cell.base = index, i, before
    cell.used = cell.is_broken and 0 or (cell.last_total - before) % cell.form.span
    if cell.used == 0 then return end
    -- Skip an entry whose units were all given back.
    if total == before then time = block_log.time_of(cell, policy, 1) end
    cell.first = min(time, policy.stamp)
  end

  -- Reads a list with the given tail; false if it is not a log.
  function block_log.read(cell, policy, tail)
    local head = redis_call('LINDEX', cell.key, '0')
    local form = form_of(tail)
    if not form or form_of(head) ~= form then return false end
    cell.form, cell.is_broken = form, false
    local _, incarnation = unpack_struct(form.header, tail)
    cell.incarnation = incarnation
    measure(cell, policy, head, tail)
    cell.repaired = cell.used > 0 and cell.last_time > policy.stamp
    return true
  end

  -- Adds entries, a flat list of times and running totals, to a block that is not in the list.
  local function push(cell, policy, block, entries)
    for i = 1, #entries, 2 do
      if #block >= cell.form.full_size then
        redis_call('RPUSH', cell.key, block)
        block = header(cell, entries[i - 1])
      end
      block = block .. entry(cell.form, entries[i], entries[i + 1])
    end
    redis_call('RPUSH', cell.key, block)
    redis_call('PEXPIRE', cell.key, policy.ttl)
    measure(cell, policy, redis_call('LINDEX', cell.key, '0'), block)
  end

  -- Restarts the log with the given entries, for at most `most` units.
  function block_log.write_anew(cell, policy, entries, most)
    if cell.exists then redis_call('DEL', cell.key) end
    cell.exists, cell.is_broken, cell.form = true, false, FORMS[most < FORMS[1].span and 1 or 2]
    push(cell, policy, header(cell, 0), entries)
  end

  -- Replaces all entries from number i of a block on.
  local function replace(cell, policy, index, i, entries)
    local block = block_at(cell, index)
    if index > 0 and not cell.is_broken then
      redis_call('LTRIM', cell.key, '0', index - 1)
    else
      redis_call('DEL', cell.key)
    end
    if cell.is_broken then
      cell.used, cell.exists = 0, false
    else
      push(cell, policy, block:sub(1, (i + 1) * cell.form.size), entries)
    end
  end

  -- Times and running totals from number i of a block on, less the units before or given back.
  local function entries_from(cell, index, i, less)
    local form, entries = cell.form, {}
    for number = index, count_of(cell) - 1 do
      local block = block_at(cell, number)
      for place = number == index and i or 0, entries_in(form, block) - 1 do
        local time, total = entry_in(form, block, place)
        entries[#entries + 1], entries[#entries + 2] = time, (total - less) % form.span
      end
    end
    return entries
  end

  -- Drops the blocks before the first live one, and the k oldest units. Only unconditional charges
  -- take units beyond the maximum.
  local function drop(cell, policy, k)
    local form = cell.form
    if k > 0 then cell.block, cell.entry = search(cell, reaches, k + 1) end
    if cell.is_broken then return end
    if cell.block > 0 then
      redis_call('LTRIM', cell.key, cell.block, '-1')
      cell.head_block = redis_call('LINDEX', cell.key, '0')
      cell.count, cell.block = nil, 0
    end
    if k <= 0 then return end
    local is_tail = cell.head_block == cell.tail_block
    cell.base, cell.used = (cell.base + k) % form.span, cell.used - k
    cell.head_block = header(cell, cell.base) .. cell.head_block:sub((cell.entry + 1) * form.size + 1)
    redis_call('LSET', cell.key, '0', cell.head_block)
    if is_tail then cell.tail_block = cell.head_block end
    cell.entry, cell.first = 0, min((entry_in(form, cell.head_block, 0)), policy.stamp)
  end

  function block_log.take(cell, policy, units, most)
    local stamp, is_kept = policy.stamp, cell.used > 0 and cell.used + units - most < cell.used
    if is_kept and most >= cell.form.span then
      block_log.write_anew(cell, policy, entries_from(cell, cell.block, cell.entry, cell.base), most)
    end
    if is_kept then drop(cell, policy, cell.used + units - most) end
    if not is_kept or cell.is_broken then return block_log.write_anew(cell, policy, { stamp, units }, most) end
    local form, tail, total = cell.form, cell.tail_block, cell.last_total + units
    local is_head, is_ttl_due = cell.head_block == tail, cell.last_time < policy.share_start
    if stamp ~= cell.last_time and #tail >= form.full_size then
      cell.tail_block = header(cell, cell.last_total) .. entry(form, stamp, total)
      cell.count = redis_call('RPUSH', cell.key, cell.tail_block)
    else
      if stamp == cell.last_time then tail = tail:sub(1, -form.size - 1) end
      cell.tail_block = tail .. entry(form, stamp, total)
      redis_call('LSET', cell.key, '-1', cell.tail_block)
      if is_head then cell.head_block = cell.tail_block end
    end
    cell.last_time, cell.last_total, cell.used = stamp, total % form.span, cell.used + units
    if is_ttl_due then redis_call('PEXPIRE', cell.key, policy.ttl) end
  end

  -- Times after now count as now: all entries after it become one.
  function block_log.persist(cell, policy)
    cell.block, cell.entry = 0, 0
    local index, i = search(cell, is_after, policy.stamp - 1)
    replace(cell, policy, index, i, { policy.stamp, cell.last_total })
  end

  -- Subtracts units from an entry, and so from all later totals. An entry without units remains: it
  -- counts nothing and is dropped with its block.
  function block_log.give_back(cell, policy, units, at)
    if cell.last_time < at then return end
    local index, i, block = search(cell, is_after, at - 1)
    local time, total, before = entry_in(cell.form, block, i)
    if index == cell.block and i == cell.entry then before = cell.base end
    local given = min(units, (total - before) % cell.form.span)
    if time == at and given > 0 then replace(cell, policy, index, i, entries_from(cell, index, i, given)) end
  end

  return block_log
end
