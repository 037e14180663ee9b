-- Names that decide.lua and usual/unusual.lua give to the function of prelude.lua.
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- Returns an integer, or its text if it is just below 2^53: clients add a digit's code before they
-- subtract it, and so misread it.
local function exact(amount)
  return amount > 9007199254740900 and string.format('%.0f', amount) or amount
end

-- Returns the report of a key in its first incarnation, in the form that report.lua gives.
local function report_of(allowed, amount, detail)
  local denied = not allowed
  -- include parts/report
  return report
end
