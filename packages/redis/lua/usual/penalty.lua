-- Decides the usual states of a penalty whose request is allowed: nothing counted, or strikes
-- without a block. Formats: algorithms/penalty.lua.
-- setting: the durations of blocks, which only the whole algorithm reads.
-- include parts/read-string
if value then
  if #value ~= 29 then break end
  local version, since, strikes, blocked_until, asked, last = unpack_struct('<BI6I4I6I6I6', value)
  if version ~= 1 or now < blocked_until or since > now then break end
  -- No block is longer than ten years (core: longestWindowMs).
  if asked > 315360000000 or last > 315360000000 or (blocked_until == 0) ~= (asked == 0) or strikes + asked == 0 then break end
  amount, detail = now < since + window and strikes or 0, 0
else
  amount, detail = 0, 0
end
