-- What every script begins with: short names for library functions, and the time of the call.
-- ARGV[1]  milliseconds of the caller's clock; '' for the server's own
local pack, unpack_struct = struct.pack, struct.unpack
local redis_call, redis_pcall = redis.call, redis.pcall

local now = ARGV[1]
if now == '' then
  local time = redis_call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
else
  now = now + 0
end
