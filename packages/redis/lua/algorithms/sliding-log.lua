-- sliding-log: every unit with its time, exact over any rolling window, packed into blocks (sliding-log-blocks.lua).
do
  local sliding_log = {}
  algorithms['sliding-log'] = sliding_log

  sliding_log.load = blocks.load

  function sliding_log.settle(cell, check, now, keep)
    if not blocks.is_empty(cell) then
      local latest = recorded_at(check, now)
      local time, total = blocks.last_entry(cell, now)
      if time > latest then
        local index, i = blocks.first_after(cell, now, latest - 1)
        local before = blocks.total_before(cell, index, i, now)
        local changed = cell.changed
        blocks.cut_from(cell, index, i)
        blocks.append(cell, latest, total, before)
        cell.changed = changed
        cell.settled = true
      end
    end
    if keep and cell.settled then cell.changed = true end
  end

  function sliding_log.used(cell, check, now)
    local index, i = blocks.first_after(cell, now, now - check.window)
    if index >= cell.count then return 0 end
    local _, total = blocks.last_entry(cell, now)
    return (total - blocks.total_before(cell, index, i, now)) % cell.layout.span
  end

  function sliding_log.ms_until(cell, check, now, target)
    if sliding_log.used(cell, check, now) <= target then return 0 end
    local span = cell.layout.span
    local _, last_total = blocks.last_entry(cell, now)
    local cut = now - check.window
    local index, i = blocks.search(cell, now, function(time, total)
      return time > cut and (last_total - total) % span <= target
    end)
    return blocks.entry_at(cell, index, i, now) + check.window - now
  end

  function sliding_log.reset_ms(cell, check, now)
    return effective_window(sliding_log, cell, check, now)
  end

  -- Units beyond the limit, which only a charge without asking can take, matter no more: the newest `limit` are kept.
  function sliding_log.take(cell, check, now)
    local time = recorded_at(check, now)
    local index = blocks.first_after(cell, now, now - check.window)
    if index >= cell.count then
      blocks.start_anew(cell, check)
    else
      cell.first = index
      if check.limit >= cell.layout.span then blocks.widen(cell, check, now) end
    end
    local cost = min(check.cost, check.limit)
    local used = sliding_log.used(cell, check, now)
    local last_time, last_total = nil, 0
    if not blocks.is_empty(cell) then last_time, last_total = blocks.last_entry(cell, now) end
    if last_time == time then
      blocks.replace_last(cell, time, last_total + cost)
    else
      blocks.append(cell, time, last_total + cost, last_total)
    end
    if used + cost > check.limit then
      local span, total = cell.layout.span, last_total + cost
      local block, i = blocks.search(cell, now, function(entry_time, entry_total)
        return entry_time > now - check.window and (total - entry_total) % span < check.limit
      end)
      blocks.begin_at(cell, block, i, total - check.limit)
    end
    return time
  end

  function sliding_log.give_back(cell, check, now, at)
    if blocks.is_empty(cell) or at <= now - check.window then return end
    local index, i = blocks.first_after(cell, now, at - 1)
    if index >= cell.count then return end
    local time, total = blocks.entry_at(cell, index, i, now)
    if time ~= at then return end
    local units = min(check.cost, (total - blocks.total_before(cell, index, i, now)) % cell.layout.span)
    if units == 0 then return end
    blocks.subtract(cell, index, i, units, now)
    -- A key that nothing is left of ends its life, so that no receipt reaches what comes after.
    if sliding_log.used(cell, check, now) == 0 then blocks.clear(cell) end
  end

  sliding_log.clear = blocks.clear

  function sliding_log.save(cell, check, now)
    blocks.write(cell)
    if blocks.is_empty(cell) then return end
    local ttl = blocks.last_entry(cell, now) + check.window - now
    if ttl <= 0 then
      redis.call('DEL', cell.key)
    else
      redis.call('PEXPIRE', cell.key, ttl + check.ttl_margin)
    end
  end
end
