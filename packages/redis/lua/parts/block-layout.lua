-- Block layout of a `version` (algorithms/sliding-log-blocks.lua): formats of the header, of one
-- entry and of two; bytes of a header, an entry and a full block; modulus of totals. Full blocks
-- fill a list node of 8 KiB: 71 narrow blocks take 8,172 bytes, 66 wide ones 8,191. So no block
-- starts in a node and then outgrows its allocation.
local header, entry, two, header_size, size, full_size, span = '<BI4I3', '<I5I3', '<I5I3I5I3', 8, 8, 112, 16777216
if version == 2 then
  header, entry, two, header_size, size, full_size, span = '<BI4I6', '<I5I6', '<I5I6I5I6', 11, 11, 121, 281474976710656
end
