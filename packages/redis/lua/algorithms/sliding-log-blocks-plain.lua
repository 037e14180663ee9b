-- The usual case of the packed log where the limit is high (sliding-log-blocks.lua).
-- One unit of a log that has room, which most requests meet: as read, take and report would do it, without a cell.
if needed['sliding-log'] then
  function plain.block_log(policy)
    local block_form = whole('block-form')
    local entries_in, entry_in, last_of = block_form.entries_in, block_form.entry_in, block_form.last_of
    local total_before, entry = block_form.total_before, block_form.entry
    local stamp, cut = policy.stamp, policy.cut

    local function consume_one(key)
      local tail = redis_pcall('LINDEX', key, '-1')
      local form = type(tail) == 'string' and block_form.of(tail)
      if not form or policy.limit >= form.span / 2 then return nil end
      local _, incarnation = unpack_struct(form.header, tail)
      local last_time, last_total = last_of(form, tail)
      if incarnation > 0 or last_time > stamp or last_time <= cut then return nil end
      local head, dead = redis_call('LINDEX', key, '0'), false
      if last_of(form, head) <= cut then
        head, dead = redis_call('LINDEX', key, '1'), true
        if last_of(form, head) <= cut then return nil end
      end
      local from, to = 0, entries_in(form, head) - 1
      while from < to do
        local middle = floor((from + to) / 2)
        if entry_in(form, head, middle) > cut then to = middle else from = middle + 1 end
      end
      local base = total_before(form, head, from)
      local first, total = entry_in(form, head, from)
      local used = (last_total - base) % form.span + 1
      if used > policy.limit or total == base then return nil end
      if last_time == stamp then
        redis_call('LSET', key, '-1', tail:sub(1, #tail - form.entry_size) .. entry(form, stamp, last_total + 1))
      elseif #tail < form.full_size then
        redis_call('LSET', key, '-1', tail .. entry(form, stamp, last_total + 1))
      else
        redis_call('RPUSH', key, pack(form.header, form.version, 0, last_total) .. entry(form, stamp, last_total + 1))
      end
      if dead then redis_call('LPOP', key) end
      if last_time < policy.share_start then redis_call('PEXPIRE', key, policy.ttl) end
      return used, first + policy.window - now, tail
    end

    -- The tail was replaced, or another block put behind it.
    local function undo_one(key, tail)
      if redis_call('LINDEX', key, '-2') == tail then redis_call('RPOP', key) else redis_call('LSET', key, '-1', tail) end
    end

    return consume_one, undo_one
  end
end
