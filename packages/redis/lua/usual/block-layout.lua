-- How the blocks of a version are written (algorithms/sliding-log-block-form.lua): its header, an entry, and two entries; bytes of a header, of
-- an entry, and of a full block; what totals are modulo.
-- Blocks are as long as they are so that full ones fill a list node of 8 KiB, with no room left in which one more would begin
-- and then outgrow the node's allocation: 71 narrow blocks take 8,172 bytes, 66 wide ones 8,191.
local header, entry, two, header_size, size, full_size, span = '<BI4I3', '<I5I3', '<I5I3I5I3', 8, 8, 112, 16777216
if version == 2 then
  header, entry, two, header_size, size, full_size, span = '<BI4I6', '<I5I6', '<I5I6I5I6', 11, 11, 121, 281474976710656
end
