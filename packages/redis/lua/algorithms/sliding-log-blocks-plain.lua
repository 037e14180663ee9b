-- The usual case of the packed log where the limit is high (sliding-log-blocks.lua).
-- A log that has room, which most requests meet: as read, take and report would do it, without a cell.
if needed['sliding-log'] then
  function plain.block_log(policy)
    local limit, stamp, cut = policy.limit, policy.stamp, policy.cut
    local TIME_SPAN, HALF_SPAN = plain.block_time_span, plain.block_time_span / 2

    local function is_dead(time)
      return (time - cut - 1) % TIME_SPAN >= HALF_SPAN
    end

    -- Whether a value is a block of that version, and of whole entries.
    local function is_block(block, version, header_size, size)
      local length = #block
      return block:byte(1) == version and length > header_size and (length - header_size) % size == 0
    end

    local function consume(key, units)
      local tail = redis_pcall('LINDEX', key, '-1')
      if type(tail) ~= 'string' then return nil end
      local HEADER, ENTRY, TWO, header_size, size, full_size, span = plain.block_layout(tail:byte(1))
      local length = #tail
      if not HEADER or limit >= span / 2 or not is_block(tail, tail:byte(1), header_size, size) then return nil end
      local version, incarnation = unpack_struct(HEADER, tail)
      local last, last_total = unpack_struct(ENTRY, tail, length - size + 1)
      -- As far after now as before the cut.
      local last_age = (stamp - last) % TIME_SPAN
      if incarnation > 0 or last_age >= stamp - cut then return nil end

      local head, dead = redis_call('LINDEX', key, '0'), false
      if not is_block(head, version, header_size, size) then return nil end
      if is_dead((unpack_struct(ENTRY, head, #head - size + 1))) then
        head, dead = redis_call('LINDEX', key, '1'), true
        if not head or not is_block(head, version, header_size, size) then return nil end
        if is_dead((unpack_struct(ENTRY, head, #head - size + 1))) then return nil end
      end
      -- The first live unit, its total, and the total before it.
      local low, high = 0, (#head - header_size) / size - 1
      while low < high do
        local middle = floor((low + high) / 2)
        local time = unpack_struct(ENTRY, head, header_size + 1 + middle * size)
        if is_dead(time) then low = middle + 1 else high = middle end
      end
      local first, total, base, _
      if low == 0 then
        _, _, base = unpack_struct(HEADER, head)
        first, total = unpack_struct(ENTRY, head, header_size + 1)
      else
        _, base, first, total = unpack_struct(TWO, head, header_size + 1 + (low - 1) * size)
      end
      local used = (last_total - base) % span + units
      if used > limit or total == base then return nil end

      local added = pack(ENTRY, stamp % TIME_SPAN, (last_total + units) % span)
      if last_age == 0 then
        redis_call('LSET', key, '-1', tail:sub(1, length - size) .. added)
      elseif length < full_size then
        redis_call('LSET', key, '-1', tail .. added)
      else
        redis_call('RPUSH', key, pack(HEADER, version, 0, last_total) .. added)
      end
      if dead then redis_call('LPOP', key) end
      if stamp - last_age < policy.share_start then redis_call('PEXPIRE', key, policy.ttl) end
      return used, min((first - cut) % TIME_SPAN + cut, stamp) + policy.window - now, tail
    end

    -- The tail was replaced, or another block put behind it.
    local function undo(key, tail)
      if redis_call('LINDEX', key, '-2') == tail then redis_call('RPOP', key) else redis_call('LSET', key, '-1', tail) end
    end

    return consume, undo
  end
end
