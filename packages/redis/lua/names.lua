-- What the script uses that decides any request.
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- A report is one integer, x · 2^27 + y, where both numbers fit; -1 less than its negative for a request that was denied.
-- Otherwise it is a list: { whether the request is allowed, x, y, incarnation, ms to wait or to be held }.
local function report_of(allowed, x, y)
  if x >= 67108864 or y >= 134217728 then return { allowed and 1 or 0, x, y, 0 } end
  local packed = x * 134217728 + y
  return allowed and packed or -1 - packed
end
