-- What the script uses that decides any request.
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- Clients misread integers just below 2^53, by adding a digit's code before they subtract it: those go as text.
local function exact(x)
  return x > 9007199254740900 and string.format('%.0f', x) or x
end

-- A report is one integer, x · 2^27 + y, where both numbers fit; -1 less than its negative for a request that was denied.
-- Otherwise it is a list: { whether the request is allowed, x, y, incarnation, ms to wait or to be held }.
local function report_of(allowed, x, y)
  if x >= 67108863 or y >= 134217728 then return { allowed and 1 or 0, exact(x), y, 0 } end
  local packed = x * 134217728 + y
  return allowed and packed or -1 - packed
end
