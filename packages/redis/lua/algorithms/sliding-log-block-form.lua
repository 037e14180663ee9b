-- Reads and writes one block of the packed log (sliding-log-blocks.lua): a header and up to 13
-- entries, oldest first.
-- Value: [u8 version] [u32 incarnation] [running total before the block]
--        then for each entry [u40 ms] [running total]
-- The units of an entry are its total less the one before it. A search by totals answers any cost.
-- Totals wrap around: only differences count, of up to twice the limit. Version 1 holds totals in
-- 24 bits, for limits below 2^23, and version 2 in 48. Times are modulo 2^40 ms: stored times lie
-- within 17 years of now.
-- Usual states: usual/sliding-log-blocks.lua, which reads and writes the same format.
do
  define['block-form'] = function()
    local block_form = {}

    local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888

    local function form(version)
      -- include usual/block-layout
      return { version = version, header = header, entry = entry, header_size = header_size, entry_size = size, full_size = full_size, span = span }
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
