-- What every script begins with: short names for library functions, and the time of the call.
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpack_struct = struct.pack, struct.unpack
local redis_call, redis_pcall = redis.call, redis.pcall

local now = tonumber(ARGV[1])
if not now then
  local time = redis_call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

-- A report is one integer, x · 2^27 + y, where both numbers fit; -1 less than its negative for a request that was denied.
-- Otherwise it is a list: { whether the request is allowed, x, y, incarnation, ms to wait or to be held }.
local X_SPAN, Y_SPAN = 67108864, 134217728
local function report_of(allowed, x, y)
  if x >= X_SPAN or y >= Y_SPAN then return { allowed and 1 or 0, x, y, 0 } end
  local packed = x * Y_SPAN + y
  return allowed and packed or -1 - packed
end
