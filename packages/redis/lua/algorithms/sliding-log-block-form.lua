-- How one block of the packed log is written (sliding-log-blocks.lua): a header and up to 13 entries, oldest first:
--   [u8 version] [u32 incarnation] [running total before the block]  then  [u40 ms] [running total] each
-- An entry says how many units were taken at its time: its total less the one before it. Totals answer any cost by a
-- search, and wrap around: only differences count, of up to twice the limit. Version 1 holds totals in 24 bits, for limits
-- below 2^23; version 2 in 48. Times are modulo 2^40 ms: what is stored lies within 17 years of now.
if needed['sliding-log'] then
  -- Stored times are modulo this, and so are differences: those of what lies behind are in the upper half.
  plain.block_time_span = 1099511627776

  -- By version: how its header, an entry, and two entries are written; bytes of a header, of an entry, and of a full block; what totals are modulo.
  -- Blocks are as long as they are so that full ones fill a list node of 8 KiB, with no room left in which one more would begin
  -- and then outgrow the node's allocation: 71 narrow blocks take 8,172 bytes, 66 wide ones 8,191.
  function plain.block_layout(version)
    if version == 1 then return '<BI4I3', '<I5I3', '<I5I3I5I3', 8, 8, 112, 16777216 end
    if version == 2 then return '<BI4I6', '<I5I6', '<I5I6I5I6', 11, 11, 121, 281474976710656 end
  end

  define['block-form'] = function()
    local block_form = {}

    local TIME_SPAN, HALF_SPAN = plain.block_time_span, plain.block_time_span / 2

    local function form(version)
      local header, entry, _, header_size, entry_size, full_size, span = plain.block_layout(version)
      return {
        version = version, header = header, entry = entry,
        header_size = header_size, entry_size = entry_size, full_size = full_size, span = span,
      }
    end

    local NARROW, WIDE = form(1), form(2)
    local FORMS = { NARROW, WIDE }
    local EPOCH = now - now % TIME_SPAN

    function block_form.of(block)
      local form = FORMS[block:byte(1)]
      if not form then return nil end
      local entries = (#block - form.header_size) / form.entry_size
      if entries < 1 or entries % 1 ~= 0 then return nil end
      return form
    end

    -- The form for up to so many units.
    function block_form.suiting(most)
      return most < NARROW.span and NARROW or WIDE
    end

    function block_form.entries_in(form, block)
      return (#block - form.header_size) / form.entry_size
    end

    local function absolute(time)
      time = EPOCH + time
      if time - now >= HALF_SPAN then return time - TIME_SPAN end
      if now - time > HALF_SPAN then return time + TIME_SPAN end
      return time
    end

    -- Time and running total of entry number i, from 0, of a block.
    function block_form.entry_in(form, block, i)
      local time, total = unpack_struct(form.entry, block, form.header_size + i * form.entry_size + 1)
      return absolute(time), total
    end

    function block_form.last_of(form, block)
      local time, total = unpack_struct(form.entry, block, #block - form.entry_size + 1)
      return absolute(time), total
    end

    function block_form.total_before(form, block, i)
      if i > 0 then
        local _, total = block_form.entry_in(form, block, i - 1)
        return total
      end
      local _, _, before = unpack_struct(form.header, block)
      return before
    end

    function block_form.entry(form, time, total)
      return pack(form.entry, time % TIME_SPAN, total % form.span)
    end

    return block_form
  end
end
