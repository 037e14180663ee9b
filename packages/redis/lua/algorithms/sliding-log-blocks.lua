-- The packed log of sliding-log: a list of blocks. A block is a header and up to 13 entries, oldest first:
--   [u8 version] [u32 incarnation] [running total before the block]  then  [u40 ms] [running total] each
-- An entry says how many units were taken at its time: its total less the one before it. Totals answer any cost by a
-- search, and wrap around: only differences count. Version 1 holds totals in 24 bits, for limits below 2^24; version 2
-- in 48. Times are modulo 2^40 ms: what is stored lies within 17 years of now.
-- Only the blocks at both ends are read, and those that a search goes through; a long log is never read whole.
local blocks = {}

do
  -- Blocks are as long as they are so that full ones fill a list node of 8 KiB, with no room left in which one more would begin
  -- and then outgrow the node's allocation: 71 narrow blocks take 8,172 bytes, 66 wide ones 8,191.
  local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888
  local NARROW = { version = 1, header = '<BI4I3', entry = '<I5I3', header_size = 8, entry_size = 8, entries = 13, span = 16777216 }
  local WIDE = { version = 2, header = '<BI4I6', entry = '<I5I6', header_size = 11, entry_size = 11, entries = 10, span = 281474976710656 }
  local LAYOUTS = { NARROW, WIDE }

  local function layout_of(block)
    local layout = type(block) == 'string' and LAYOUTS[block:byte(1)]
    if not layout then return nil end
    local entries = (#block - layout.header_size) / layout.entry_size
    if entries < 1 or entries % 1 ~= 0 then return nil end
    return layout
  end

  function blocks.load(key)
    local count = redis.pcall('LLEN', key)
    local cell = { key = key, blocks = {}, dirty = {}, first = 0, count = 0, stored = 0, kept = 0 }
    if type(count) ~= 'number' then
      cell.unreadable = true
    elseif count > 0 then
      cell.count, cell.stored, cell.kept = count, count, count
      local head, tail = layout_of(blocks.block_at(cell, 0)), layout_of(blocks.block_at(cell, count - 1))
      if head and head == tail then
        cell.layout = tail
        local _, incarnation = unpack_struct(tail.header, blocks.block_at(cell, count - 1))
        cell.incarnation = incarnation
      else
        cell.unreadable = true
        cell.blocks, cell.count, cell.kept = {}, 0, 0
      end
    end
    return cell
  end

  -- The blocks of a cell are numbered from 0 as the list was when the call began; those from cell.kept on exist only here.
  function blocks.block_at(cell, index)
    local block = cell.blocks[index]
    if not block then
      block = redis.call('LINDEX', cell.key, index)
      cell.blocks[index] = block
    end
    return block
  end

  function blocks.entries_in(cell, index)
    return (#blocks.block_at(cell, index) - cell.layout.header_size) / cell.layout.entry_size
  end

  -- Time and running total of entry number i (from 0) of a block.
  function blocks.entry_at(cell, index, i, now)
    local layout = cell.layout
    local time, total = unpack_struct(layout.entry, blocks.block_at(cell, index), layout.header_size + i * layout.entry_size + 1)
    local ahead = (time - now) % TIME_SPAN
    if ahead >= HALF_SPAN then ahead = ahead - TIME_SPAN end
    return now + ahead, total
  end

  function blocks.last_entry(cell, now)
    local index = cell.count - 1
    return blocks.entry_at(cell, index, blocks.entries_in(cell, index) - 1, now)
  end

  function blocks.total_before(cell, index, i, now)
    if i > 0 then
      local _, total = blocks.entry_at(cell, index, i - 1, now)
      return total
    end
    local _, _, before = unpack_struct(cell.layout.header, blocks.block_at(cell, index))
    return before
  end

  function blocks.is_empty(cell)
    return cell.first >= cell.count
  end

  -- The first entry for which found(time, total) holds; it must hold for all entries after one for which it does.
  -- Returns block and entry number; the number of blocks, and 0, when it holds for none.
  function blocks.search(cell, now, found)
    local function holds_in(index)
      return found(blocks.entry_at(cell, index, blocks.entries_in(cell, index) - 1, now))
    end
    if blocks.is_empty(cell) or not holds_in(cell.count - 1) then return cell.count, 0 end
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
    while not found(blocks.entry_at(cell, low, i, now)) do i = i + 1 end
    return low, i
  end

  function blocks.first_after(cell, now, time)
    return blocks.search(cell, now, function(entry_time) return entry_time > time end)
  end

  function blocks.put_block(cell, index, block)
    cell.blocks[index] = block
    cell.dirty[index] = true
    cell.changed = true
  end

  function blocks.clear(cell)
    cell.blocks, cell.dirty = {}, {}
    cell.first, cell.count, cell.kept = 0, 0, 0
    cell.incarnation = nil
    cell.changed = true
  end

  function blocks.start_anew(cell, check)
    blocks.clear(cell)
    cell.layout = check.limit < NARROW.span and NARROW or WIDE
  end

  function blocks.append(cell, time, total, before)
    local layout = cell.layout
    local entry = pack(layout.entry, time % TIME_SPAN, total % layout.span)
    local index = cell.count - 1
    if not blocks.is_empty(cell) and blocks.entries_in(cell, index) < layout.entries then
      blocks.put_block(cell, index, blocks.block_at(cell, index) .. entry)
    else
      cell.incarnation = cell.incarnation or new_incarnation()
      blocks.put_block(cell, cell.count, pack(layout.header, layout.version, cell.incarnation, before % layout.span) .. entry)
      cell.count = cell.count + 1
    end
  end

  function blocks.replace_last(cell, time, total)
    local index, layout = cell.count - 1, cell.layout
    local block = blocks.block_at(cell, index)
    local entry = pack(layout.entry, time % TIME_SPAN, total % layout.span)
    blocks.put_block(cell, index, block:sub(1, #block - layout.entry_size) .. entry)
  end

  -- Cuts the log off in front of an entry, so that it becomes the last one's successor.
  function blocks.cut_from(cell, index, i)
    local layout = cell.layout
    cell.count = i > 0 and index + 1 or index
    cell.kept = min(cell.kept, cell.count)
    if i > 0 then
      blocks.put_block(cell, index, blocks.block_at(cell, index):sub(1, layout.header_size + i * layout.entry_size))
    end
    cell.changed = true
  end

  -- Drops what lies before an entry, and lets the log begin at a running total.
  function blocks.begin_at(cell, index, i, total)
    local layout = cell.layout
    local entries = blocks.block_at(cell, index):sub(layout.header_size + i * layout.entry_size + 1)
    cell.first = index
    blocks.put_block(cell, index, pack(layout.header, layout.version, cell.incarnation, total % layout.span) .. entries)
  end

  -- Takes units off an entry, and so off the totals of all later ones. An entry that is left without units stays in its place: it
  -- counts for nothing and leaves with its block.
  function blocks.subtract(cell, index, i, units, now)
    local layout = cell.layout
    for block = index, cell.count - 1 do
      local parts = {}
      if block > index then
        local _, _, before = unpack_struct(layout.header, blocks.block_at(cell, block))
        parts[1] = pack(layout.header, layout.version, cell.incarnation, (before - units) % layout.span)
      else
        parts[1] = blocks.block_at(cell, block):sub(1, layout.header_size + i * layout.entry_size)
      end
      for number = block == index and i or 0, blocks.entries_in(cell, block) - 1 do
        local entry_time, entry_total = blocks.entry_at(cell, block, number, now)
        parts[#parts + 1] = pack(layout.entry, entry_time % TIME_SPAN, (entry_total - units) % layout.span)
      end
      blocks.put_block(cell, block, table.concat(parts))
    end
  end

  -- Writes the live part of a narrow log anew in the wide layout, since the limit has outgrown 24 bits. Rare: the limit was raised.
  function blocks.widen(cell, check, now)
    local index, i = blocks.first_after(cell, now, now - check.window)
    local base, entries = nil, {}
    while index < cell.count do
      base = base or blocks.total_before(cell, index, i, now)
      for number = i, blocks.entries_in(cell, index) - 1 do
        local time, total = blocks.entry_at(cell, index, number, now)
        entries[#entries + 1] = { time, (total - base) % NARROW.span }
      end
      index, i = index + 1, 0
    end
    local incarnation = cell.incarnation
    blocks.start_anew(cell, check)
    cell.incarnation = incarnation
    local before = 0
    for _, entry in ipairs(entries) do
      blocks.append(cell, entry[1], entry[2], before)
      before = entry[2]
    end
  end

  -- Writes what has changed, with as few commands as it takes.
  function blocks.write(cell)
    local kept = cell.kept
    if cell.stored > 0 or cell.unreadable then
      if cell.first >= kept then
        redis.call('DEL', cell.key)
      elseif cell.first > 0 or kept < cell.stored then
        redis.call('LTRIM', cell.key, cell.first, kept - 1)
      end
    end
    for index in pairs(cell.dirty) do
      if index >= cell.first and index < kept then
        redis.call('LSET', cell.key, index - cell.first, cell.blocks[index])
      end
    end
    for index = max(kept, cell.first), cell.count - 1 do
      redis.call('RPUSH', cell.key, cell.blocks[index])
    end
  end
end
