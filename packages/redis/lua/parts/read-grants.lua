-- Reads `grants` from the value of a key of grants (algorithms/granted-log.lua): a flat list of the
-- end, the units and the id of each.
local grants = { unpack_struct('<' .. ('I6I6I7'):rep((#value - 1) / 19), value, 2) }
-- The last number is the place after the value.
grants[#grants] = nil
