-- The usual case of the packed log where the limit is high (sliding-log-blocks.lua).
-- A log that has room, which most requests meet: as read, take and report would do it, without a cell.
if needed['sliding-log'] then
  function plain.block_log(policy)
    local block_form = whole('block-form')
    local form_of, entry, TIME_SPAN, HALF_SPAN = block_form.of, block_form.entry, block_form.time_span, block_form.half_span
    local limit, stamp, cut = policy.limit, policy.stamp, policy.cut

    -- Stored times are modulo TIME_SPAN, and so are differences: those of what lies behind are in the upper half.
    local function is_dead(time)
      return (time - cut - 1) % TIME_SPAN >= HALF_SPAN
    end

    local function is_all_dead(form, block)
      return is_dead((unpack_struct(form.entry, block, #block - form.entry_size + 1)))
    end

    -- The first live unit of a block whose last one lives: ms from the cut to it, its total, and the total before it.
    local function first_live(form, block)
      local format, size, start = form.entry, form.entry_size, form.header_size + 1
      local low, high = 0, (#block - form.header_size) / size - 1
      while low < high do
        local middle = floor((low + high) / 2)
        local time = unpack_struct(format, block, start + middle * size)
        if is_dead(time) then low = middle + 1 else high = middle end
      end
      local before, first, total, _
      if low == 0 then
        _, _, before = unpack_struct(form.header, block)
        first, total = unpack_struct(format, block, start)
      else
        _, before, first, total = unpack_struct(form.two, block, start + (low - 1) * size)
      end
      return (first - cut) % TIME_SPAN, total, before
    end

    local function consume(key, units)
      local tail = redis_pcall('LINDEX', key, '-1')
      local form = type(tail) == 'string' and form_of(tail)
      if not form or limit >= form.span / 2 then return nil end
      local _, incarnation = unpack_struct(form.header, tail)
      local last, last_total = unpack_struct(form.entry, tail, #tail - form.entry_size + 1)
      -- As far after now as before the cut.
      local last_age = (stamp - last) % TIME_SPAN
      if incarnation > 0 or last_age >= stamp - cut then return nil end
      local head, dead = redis_call('LINDEX', key, '0'), false
      if is_all_dead(form, head) then
        head, dead = redis_call('LINDEX', key, '1'), true
        if is_all_dead(form, head) then return nil end
      end
      local first, total, base = first_live(form, head)
      local used = (last_total - base) % form.span + units
      if used > limit or total == base then return nil end
      local added = entry(form, stamp, last_total + units)
      if last_age == 0 then
        redis_call('LSET', key, '-1', tail:sub(1, #tail - form.entry_size) .. added)
      elseif #tail < form.full_size then
        redis_call('LSET', key, '-1', tail .. added)
      else
        redis_call('RPUSH', key, pack(form.header, form.version, 0, last_total) .. added)
      end
      if dead then redis_call('LPOP', key) end
      if stamp - last_age < policy.share_start then redis_call('PEXPIRE', key, policy.ttl) end
      return used, first + cut + policy.window - now, tail
    end

    -- The tail was replaced, or another block put behind it.
    local function undo(key, tail)
      if redis_call('LINDEX', key, '-2') == tail then redis_call('RPOP', key) else redis_call('LSET', key, '-1', tail) end
    end

    return consume, undo
  end
end
