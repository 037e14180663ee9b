-- sliding-log: every unit with its time, exact over any rolling window, packed.
--
-- Value: a list of blocks. A block is a header and up to 10 entries, oldest first:
--   [u8 version] [u32 incarnation] [running total before the block]  then  [u40 ms] [running total] each
-- An entry says how many units were taken at its time: its total less the one before it. Totals answer any cost by a
-- search, and wrap around: only differences count. Version 1 holds totals in 24 bits, for limits below 2^24; version 2
-- in 48. Times are modulo 2^40 ms: what is stored lies within 17 years of now.
-- Only the blocks at both ends are read, and those that a search goes through; a long log is never read whole.
do
  local BLOCK_ENTRIES = 10
  local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888
  local NARROW = { version = 1, header = '<BI4I3', entry = '<I5I3', header_size = 8, entry_size = 8, span = 16777216 }
  local WIDE = { version = 2, header = '<BI4I6', entry = '<I5I6', header_size = 11, entry_size = 11, span = 281474976710656 }
  local LAYOUTS = { NARROW, WIDE }

  local function layout_of(block)
    local layout = type(block) == 'string' and LAYOUTS[block:byte(1)]
    if not layout then return nil end
    local entries = (#block - layout.header_size) / layout.entry_size
    if entries < 1 or entries % 1 ~= 0 then return nil end
    return layout
  end

  -- The blocks of a cell are numbered from 0 as the list was when the call began; those from cell.kept on exist only here.
  local function block_at(cell, index)
    local block = cell.blocks[index]
    if not block then
      block = redis.call('LINDEX', cell.key, index)
      cell.blocks[index] = block
    end
    return block
  end

  local function entries_in(cell, index)
    return (#block_at(cell, index) - cell.layout.header_size) / cell.layout.entry_size
  end

  -- Time and running total of entry number i (from 0) of a block.
  local function entry_at(cell, index, i, now)
    local layout = cell.layout
    local time, total = unpack_struct(layout.entry, block_at(cell, index), layout.header_size + i * layout.entry_size + 1)
    local ahead = (time - now) % TIME_SPAN
    if ahead >= HALF_SPAN then ahead = ahead - TIME_SPAN end
    return now + ahead, total
  end

  local function last_entry(cell, now)
    local index = cell.count - 1
    return entry_at(cell, index, entries_in(cell, index) - 1, now)
  end

  local function total_before(cell, index, i, now)
    if i > 0 then
      local _, total = entry_at(cell, index, i - 1, now)
      return total
    end
    local _, _, before = unpack_struct(cell.layout.header, block_at(cell, index))
    return before
  end

  local function is_empty(cell)
    return cell.first >= cell.count
  end

  -- The first entry for which found(time, total) holds; it must hold for all entries after one for which it does.
  -- Returns block and entry number; the number of blocks, and 0, when it holds for none.
  local function search(cell, now, found)
    local function holds_in(index)
      return found(entry_at(cell, index, entries_in(cell, index) - 1, now))
    end
    if is_empty(cell) or not holds_in(cell.count - 1) then return cell.count, 0 end
    local low, high, step = cell.first, cell.first, 1
    while not holds_in(high) do
      low = high + 1
      high = min(high + step, cell.count - 1)
      step = step * 2
    end
    while low < high do
      local middle = floor((low + high) / 2)
      if holds_in(middle) then high = middle else low = middle + 1 end
    end
    local i = 0
    while not found(entry_at(cell, low, i, now)) do i = i + 1 end
    return low, i
  end

  local function first_after(cell, now, time)
    return search(cell, now, function(entry_time) return entry_time > time end)
  end

  local function put_block(cell, index, block)
    cell.blocks[index] = block
    cell.dirty[index] = true
    cell.changed = true
  end

  -- The time under which a unit taken at now is recorded: rounded up, so that it never leaves too early.
  local function recorded_at(check, now)
    local beyond = now % check.resolution
    if beyond == 0 then return now end
    return now - beyond + check.resolution
  end

  local function start_anew(cell, check)
    cell.blocks, cell.dirty = {}, {}
    cell.first, cell.count, cell.kept = 0, 0, 0
    cell.incarnation = nil
    cell.layout = check.limit < NARROW.span and NARROW or WIDE
  end

  local function append(cell, time, total, before)
    local layout = cell.layout
    local entry = pack(layout.entry, time % TIME_SPAN, total % layout.span)
    local index = cell.count - 1
    if not is_empty(cell) and entries_in(cell, index) < BLOCK_ENTRIES then
      put_block(cell, index, block_at(cell, index) .. entry)
    else
      cell.incarnation = cell.incarnation or new_incarnation()
      put_block(cell, cell.count, pack(layout.header, layout.version, cell.incarnation, before % layout.span) .. entry)
      cell.count = cell.count + 1
    end
  end

  local function replace_last(cell, time, total)
    local index, layout = cell.count - 1, cell.layout
    local block = block_at(cell, index)
    local entry = pack(layout.entry, time % TIME_SPAN, total % layout.span)
    put_block(cell, index, block:sub(1, #block - layout.entry_size) .. entry)
  end

  -- Cuts the log off in front of an entry, so that it becomes the last one's successor.
  local function cut_from(cell, index, i)
    local layout = cell.layout
    cell.count = i > 0 and index + 1 or index
    cell.kept = min(cell.kept, cell.count)
    if i > 0 then
      put_block(cell, index, block_at(cell, index):sub(1, layout.header_size + i * layout.entry_size))
    end
    cell.changed = true
  end

  -- Drops what lies before an entry, and lets the log begin at a running total.
  local function begin_at(cell, index, i, total)
    local layout = cell.layout
    local entries = block_at(cell, index):sub(layout.header_size + i * layout.entry_size + 1)
    cell.first = index
    put_block(cell, index, pack(layout.header, layout.version, cell.incarnation, total % layout.span) .. entries)
  end

  -- Writes the live part of a narrow log anew in the wide layout, since the limit has outgrown 24 bits. Rare: the limit was raised.
  local function widen(cell, check, now)
    local index, i = first_after(cell, now, now - check.window)
    local base, entries = nil, {}
    while index < cell.count do
      base = base or total_before(cell, index, i, now)
      for number = i, entries_in(cell, index) - 1 do
        local time, total = entry_at(cell, index, number, now)
        entries[#entries + 1] = { time, (total - base) % NARROW.span }
      end
      index, i = index + 1, 0
    end
    local incarnation = cell.incarnation
    start_anew(cell, check)
    cell.incarnation = incarnation
    local before = 0
    for _, entry in ipairs(entries) do
      append(cell, entry[1], entry[2], before)
      before = entry[2]
    end
  end

  local sliding_log = {}
  algorithms['sliding-log'] = sliding_log

  function sliding_log.load(key)
    local count = redis.pcall('LLEN', key)
    local cell = { key = key, blocks = {}, dirty = {}, first = 0, count = 0, stored = 0, kept = 0 }
    if type(count) ~= 'number' then
      cell.unreadable = true
    elseif count > 0 then
      cell.count, cell.stored, cell.kept = count, count, count
      local head, tail = layout_of(block_at(cell, 0)), layout_of(block_at(cell, count - 1))
      if head and head == tail then
        cell.layout = tail
        local _, incarnation = unpack_struct(tail.header, block_at(cell, count - 1))
        cell.incarnation = incarnation
      else
        cell.unreadable = true
        cell.blocks, cell.count, cell.kept = {}, 0, 0
      end
    end
    return cell
  end

  function sliding_log.settle(cell, check, now, keep)
    if not is_empty(cell) then
      local latest = recorded_at(check, now)
      local time, total = last_entry(cell, now)
      if time > latest then
        local index, i = first_after(cell, now, latest - 1)
        local before = total_before(cell, index, i, now)
        local changed = cell.changed
        cut_from(cell, index, i)
        append(cell, latest, total, before)
        cell.changed = changed
        cell.settled = true
      end
    end
    if keep and cell.settled then cell.changed = true end
  end

  function sliding_log.used(cell, check, now)
    local index, i = first_after(cell, now, now - check.window)
    if index >= cell.count then return 0 end
    local _, total = last_entry(cell, now)
    return (total - total_before(cell, index, i, now)) % cell.layout.span
  end

  function sliding_log.ms_until(cell, check, now, target)
    if sliding_log.used(cell, check, now) <= target then return 0 end
    local span = cell.layout.span
    local _, last_total = last_entry(cell, now)
    local cut = now - check.window
    local index, i = search(cell, now, function(time, total)
      return time > cut and (last_total - total) % span <= target
    end)
    return entry_at(cell, index, i, now) + check.window - now
  end

  function sliding_log.reset_ms(cell, check, now)
    local used = sliding_log.used(cell, check, now)
    if used == 0 then return check.window end
    local target = next_unit_target(check, used)
    return effective_window(check, used, sliding_log.ms_until(cell, check, now, target))
  end

  -- Units beyond the limit, which only a charge without asking can take, matter no more: the newest `limit` are kept.
  function sliding_log.take(cell, check, now)
    local time = recorded_at(check, now)
    local index = first_after(cell, now, now - check.window)
    if index >= cell.count then
      start_anew(cell, check)
    else
      cell.first = index
      if check.limit >= cell.layout.span then widen(cell, check, now) end
    end
    local cost = min(check.cost, check.limit)
    local used = sliding_log.used(cell, check, now)
    local last_time, last_total = nil, 0
    if not is_empty(cell) then last_time, last_total = last_entry(cell, now) end
    if last_time == time then
      replace_last(cell, time, last_total + cost)
    else
      append(cell, time, last_total + cost, last_total)
    end
    if used + cost > check.limit then
      local span, total = cell.layout.span, last_total + cost
      local block, i = search(cell, now, function(entry_time, entry_total)
        return entry_time > now - check.window and (total - entry_total) % span < check.limit
      end)
      begin_at(cell, block, i, total - check.limit)
    end
    return time
  end

  function sliding_log.give_back(cell, check, now, at)
    if is_empty(cell) or at <= now - check.window then return end
    local index, i = first_after(cell, now, at - 1)
    if index >= cell.count then return end
    local layout = cell.layout
    local time, total = entry_at(cell, index, i, now)
    if time ~= at then return end
    local units = min(check.cost, (total - total_before(cell, index, i, now)) % layout.span)
    if units == 0 then return end
    -- An entry that is left without units stays in its place: it counts for nothing and leaves with its block.
    for block = index, cell.count - 1 do
      local parts = {}
      if block > index then
        local _, _, before = unpack_struct(layout.header, block_at(cell, block))
        parts[1] = pack(layout.header, layout.version, cell.incarnation, (before - units) % layout.span)
      else
        parts[1] = block_at(cell, block):sub(1, layout.header_size + i * layout.entry_size)
      end
      for number = block == index and i or 0, entries_in(cell, block) - 1 do
        local entry_time, entry_total = entry_at(cell, block, number, now)
        parts[#parts + 1] = pack(layout.entry, entry_time % TIME_SPAN, (entry_total - units) % layout.span)
      end
      put_block(cell, block, table.concat(parts))
    end
  end

  function sliding_log.clear(cell)
    cell.blocks, cell.dirty = {}, {}
    cell.first, cell.count, cell.kept = 0, 0, 0
    cell.incarnation = nil
    cell.changed = true
  end

  function sliding_log.save(cell, check, now)
    local kept = cell.kept
    if cell.stored > 0 or cell.unreadable then
      if cell.first >= kept then
        redis.call('DEL', cell.key)
      elseif cell.first > 0 or kept < cell.stored then
        redis.call('LTRIM', cell.key, cell.first, kept - 1)
      end
    end
    if is_empty(cell) then return end
    for index = cell.first, cell.count - 1 do
      if index >= kept then
        redis.call('RPUSH', cell.key, cell.blocks[index])
      elseif cell.dirty[index] then
        redis.call('LSET', cell.key, index - cell.first, cell.blocks[index])
      end
    end
    local ttl = last_entry(cell, now) + check.window - now
    if ttl <= 0 then
      redis.call('DEL', cell.key)
    else
      redis.call('PEXPIRE', cell.key, ttl + check.ttl_margin)
    end
  end
end
