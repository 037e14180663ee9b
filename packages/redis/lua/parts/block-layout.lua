-- Block layout of a `version` (algorithms/sliding-log-blocks.lua): formats of the header, of an
-- entry, and of an entry with the total before it; bytes of a header or an entry, and of a full
-- block; modulus of totals. Full blocks fill a list node of 8 KiB: 71 narrow blocks take 8,172
-- bytes, 66 wide ones 8,191. So no block starts in a node and then outgrows its allocation.
local header, entry, both, size, full_size, span = '<BI4I3', '<I5I3', '<I3I5I3', 8, 112, 16777216
if version == 2 then
  header, entry, both, size, full_size, span = '<BI4I6', '<I5I6', '<I6I5I6', 11, 121, 281474976710656
end
