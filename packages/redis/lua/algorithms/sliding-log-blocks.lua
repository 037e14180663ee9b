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
  local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888

  local function form(version)
    -- include parts/block-layout
    return { version = version, header = header, entry = entry, header_size = header_size, entry_size = size, full_size = full_size, span = span }
  end

  local NARROW, WIDE = form(1), form(2)
  local FORMS = { NARROW, WIDE }
  local EPOCH = now - now % TIME_SPAN

  local function form_of(block)
    local form = FORMS[block:byte(1)]
    if not form then return nil end
    local entries = (#block - form.header_size) / form.entry_size
    if entries < 1 or entries % 1 ~= 0 then return nil end
    return form
  end

  local function entries_in(form, block) return (#block - form.header_size) / form.entry_size end

  local function absolute(time)
    time = EPOCH + time
    if time - now >= HALF_SPAN then return time - TIME_SPAN end
    if now - time > HALF_SPAN then return time + TIME_SPAN end
    return time
  end

  -- Time and running total of entry number i, from 0, of a block.
  local function entry_in(form, block, i)
    local time, total = unpack_struct(form.entry, block, form.header_size + i * form.entry_size + 1)
    return absolute(time), total
  end

  local function last_of(form, block)
    local time, total = unpack_struct(form.entry, block, #block - form.entry_size + 1)
    return absolute(time), total
  end

  local function total_before(form, block, i)
    if i > 0 then
      local _, total = entry_in(form, block, i - 1)
      return total
    end
    local _, _, before = unpack_struct(form.header, block)
    return before
  end

  local function entry(form, time, total)
    return pack(form.entry, time % TIME_SPAN, total % form.span)
  end

  local function count_of(cell)
    if not cell.count then cell.count = redis_call('LLEN', cell.key) end
    return cell.count
  end

  -- Blocks are numbered from 0, like the list. An unreadable block is replaced by the tail, so that
  -- searches end.
  local function block_at(cell, index)
    if index == 0 then return cell.head_block end
    if index == cell.count - 1 then return cell.tail_block end
    local block = redis_call('LINDEX', cell.key, index)
    if block and form_of(block) == cell.form then return block end
    if not cell.is_broken then reject() end
    cell.is_broken = true
    return cell.tail_block
  end

  -- Searches look for the first entry after a time, or for the entry with the k-th unit.
  local function is_after(_cell, time, _total, wanted) return time > wanted end

  local function reaches(cell, _time, total, wanted)
    return (total - cell.base) % cell.form.span >= wanted
  end

  -- The first entry of a block, starting at `from`, for which `found` is true; it must be for the
  -- last.
  local function search_block(cell, block, from, found, wanted)
    local form = cell.form
    local to = entries_in(form, block) - 1
    while from < to do
      local middle = floor((from + to) / 2)
      local time, total = entry_in(form, block, middle)
      if found(cell, time, total, wanted) then to = middle else from = middle + 1 end
    end
    return from
  end

  -- Block and number of the first entry for which `found` is true. One must exist, and `found` must
  -- be true for all entries after it.
  local function search(cell, found, wanted)
    local form, last = cell.form, count_of(cell) - 1
    local low, high, step = cell.block, cell.block, 1
    local time, total = last_of(form, block_at(cell, high))
    while high < last and not found(cell, time, total, wanted) do
      low = high + 1
      high = min(high + step, last)
      step = step * 2
      time, total = last_of(form, block_at(cell, high))
    end
    while low < high do
      local middle = floor((low + high) / 2)
      time, total = last_of(form, block_at(cell, middle))
      if found(cell, time, total, wanted) then high = middle else low = middle + 1 end
    end
    local block = block_at(cell, low)
    return low, search_block(cell, block, low == cell.block and cell.entry or 0, found, wanted), block
  end

  -- Finds the first live entry: its block, its number, its time, and the running total before it.
  local function measure(cell, policy)
    local form, block, i = cell.form, cell.head_block, 0
    cell.used, cell.block, cell.entry = 0, 0, 0
    if cell.last_time <= policy.dead_until then return end
    if last_of(form, block) > policy.dead_until then
      i = search_block(cell, block, 0, is_after, policy.dead_until)
    else
      cell.block, i, block = search(cell, is_after, policy.dead_until)
    end
    cell.entry = i
    local time, total = entry_in(form, block, i)
    cell.base = total_before(form, block, i)
    cell.used = (cell.last_total - cell.base) % form.span
    if cell.is_broken then cell.used = 0 end
    if cell.used == 0 then return end
    -- Skip an entry whose units were all given back.
    if total == cell.base then time = block_log.time_of(cell, policy, 1) end
    cell.first = min(time, policy.stamp)
  end

  -- Reads a list; nil if there is none, false if it is not a log.
  function block_log.read(cell, key, policy)
    cell.layout, cell.is_broken = block_log, false
    local tail = redis.pcall('LINDEX', key, '-1')
    if not tail then
      cell.exists = false
      return true
    end
    if type(tail) ~= 'string' then return nil end
    local head = redis_call('LINDEX', key, '0')
    local form = form_of(tail)
    if not form or form_of(head) ~= form then return false end
    cell.form, cell.head_block, cell.tail_block = form, head, tail
    -- Blocks are unique.
    cell.count = head == tail and 1 or nil
    local _, incarnation = unpack_struct(form.header, tail)
    cell.incarnation = incarnation
    cell.last_time, cell.last_total = last_of(form, tail)
    measure(cell, policy)
    cell.repaired = cell.used > 0 and cell.last_time > policy.stamp
    return true
  end

  function block_log.time_of(cell, policy, k)
    local _, i, block = search(cell, reaches, k)
    return min((entry_in(cell.form, block, i)), policy.stamp)
  end

  local function header(cell, before)
    return pack(cell.form.header, cell.form.version, cell.incarnation, before % cell.form.span)
  end

  local function put_tail(cell, block)
    if cell.count == 1 then cell.head_block = block end
    cell.tail_block = block
    redis_call('LSET', cell.key, '-1', block)
  end

  local function push(cell, block)
    if cell.count == 0 then cell.head_block = block end
    cell.tail_block = block
    cell.count = redis_call('RPUSH', cell.key, block)
  end

  -- Records a running total, under the last entry's time or a later one.
  local function append(cell, time, total)
    local form, tail = cell.form, cell.tail_block
    if tail and time == cell.last_time then
      put_tail(cell, tail:sub(1, #tail - form.entry_size) .. entry(form, time, total))
    elseif tail and #tail < form.full_size then
      put_tail(cell, tail .. entry(form, time, total))
    else
      push(cell, header(cell, cell.last_total) .. entry(form, time, total))
    end
    cell.last_time, cell.last_total = time, total % form.span
  end

  -- Starts an empty log for at most `most` units.
  local function begin(cell, most)
    if cell.exists then redis_call('DEL', cell.key) end
    cell.exists, cell.is_broken = true, false
    cell.form = most < NARROW.span and NARROW or WIDE
    cell.head_block, cell.tail_block, cell.count, cell.block, cell.entry = nil, nil, 0, 0, 0
    cell.base, cell.last_total, cell.last_time = 0, 0, -1
  end

  -- Restarts the log with the given entries: times and running totals.
  function block_log.write_anew(cell, policy, entries, most)
    begin(cell, most)
    for _, one in ipairs(entries) do append(cell, one.time, one.total) end
    redis_call('PEXPIRE', cell.key, policy.ttl)
    measure(cell, policy)
  end

  -- Drops the blocks before the first live one.
  local function drop_dead(cell)
    if cell.block == 0 then return end
    if cell.block == 1 then redis_call('LPOP', cell.key) else redis_call('LTRIM', cell.key, cell.block, '-1') end
    cell.count = cell.count and cell.count - cell.block
    cell.head_block = redis_call('LINDEX', cell.key, '0')
    cell.block = 0
  end

  -- Makes room for units beyond the maximum, which only unconditional charges can take, by dropping
  -- the k oldest.
  local function drop_oldest(cell, policy, k)
    local index, i, block = search(cell, reaches, k + 1)
    local form = cell.form
    cell.base = (cell.base + k) % form.span
    cell.block, cell.entry = index, 0
    drop_dead(cell)
    block = header(cell, cell.base) .. block:sub(form.header_size + i * form.entry_size + 1)
    redis_call('LSET', cell.key, '0', block)
    cell.head_block = block
    if cell.count == 1 then cell.tail_block = block end
    cell.first = min((entry_in(form, block, 0)), policy.stamp)
    cell.used = cell.used - k
  end

  function block_log.take(cell, policy, units, most)
    local stamp = policy.stamp
    local excess = cell.used + units - most
    if cell.used == 0 or excess >= cell.used then
      begin(cell, most)
      append(cell, stamp, units)
      redis_call('PEXPIRE', cell.key, policy.ttl)
      cell.used, cell.first = units, stamp
      return
    end
    if most >= cell.form.span then block_log.write_anew(cell, policy, block_log.entries(cell), most) end
    drop_dead(cell)
    if excess > 0 then drop_oldest(cell, policy, excess) end
    local is_ttl_due = cell.last_time < policy.share_start
    append(cell, stamp, cell.last_total + units)
    cell.used = cell.used + units
    if cell.is_broken then return block_log.write_anew(cell, policy, { { time = stamp, total = units } }, most) end
    if is_ttl_due then redis_call('PEXPIRE', cell.key, policy.ttl) end
  end

  -- Times and running totals of the live entries.
  function block_log.entries(cell)
    local form, entries, i = cell.form, {}, cell.entry
    for index = cell.block, count_of(cell) - 1 do
      local block = block_at(cell, index)
      for number = i, entries_in(form, block) - 1 do
        local time, total = entry_in(form, block, number)
        entries[#entries + 1] = { time = time, total = (total - cell.base) % form.span }
      end
      i = 0
    end
    return entries
  end

  -- Times after now count as now: all entries after it become one.
  function block_log.persist(cell, policy)
    local total, key = cell.last_total, cell.key
    cell.block, cell.entry = 0, 0
    local index, i, block = search(cell, is_after, policy.stamp - 1)
    local tail = i > 0 and block:sub(1, cell.form.header_size + i * cell.form.entry_size) or index > 0 and block_at(cell, index - 1)
    if cell.is_broken then
      redis_call('DEL', key)
      cell.used, cell.exists = 0, false
      return
    end
    if not tail then
      local before = total_before(cell.form, block, 0)
      begin(cell, cell.form.span - 1)
      cell.last_total = before
    else
      redis_call('LTRIM', key, '0', i > 0 and index or index - 1)
      if i > 0 then redis_call('LSET', key, '-1', tail) end
      cell.tail_block = tail
      cell.last_time, cell.last_total = last_of(cell.form, tail)
    end
    append(cell, policy.stamp, total)
    redis_call('PEXPIRE', key, policy.ttl)
    block_log.read(cell, key, policy)
  end

  -- Subtracts units from an entry, and so from all later totals. An entry without units remains: it
  -- counts nothing and is dropped with its block.
  function block_log.give_back(cell, policy, units, at)
    if cell.last_time < at then return end
    local form = cell.form
    local index, first, block = search(cell, is_after, at - 1)
    local time, total = entry_in(form, block, first)
    if time ~= at then return end
    local is_oldest = index == cell.block and first == cell.entry
    local before = is_oldest and cell.base or total_before(form, block, first)
    local given = min(units, (total - before) % form.span)
    if given == 0 then return end
    for number = index, cell.count - 1 do
      if number > index then block = block_at(cell, number) end
      local from = number == index and first or 0
      local parts = { block:sub(1, form.header_size + from * form.entry_size) }
      if number > index then parts[1] = header(cell, total_before(form, block, 0) - given) end
      for i = from, entries_in(form, block) - 1 do
        local entry_time, entry_total = entry_in(form, block, i)
        parts[#parts + 1] = entry(form, entry_time, entry_total - given)
      end
      redis_call('LSET', cell.key, number, table.concat(parts))
    end
    block_log.read(cell, cell.key, policy)
  end

  return block_log
end
