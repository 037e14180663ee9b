-- Starts every script: aliases functions, and reads the time of the call from `caller_ms`, ms of
-- the caller's clock; nil or '' for the server's clock.
local redis_call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
-- Leases taken by the call; the window of the last one, and its bounds as strings.
local lease_count, lease_window, lease_end, after_now = 0, nil, nil, nil

-- A key outlives its last unit by at least `ttl_margin` ms, and a log's key also by the window
-- divided by `ttl_parts`, so that its TTL is rarely set. Both are larger with a caller's clock.
local now, server_micros, ttl_parts, ttl_margin = caller_ms, nil, 2, 10000
if not now or now == '' then
  local time = redis_call('TIME')
  server_micros, ttl_parts, ttl_margin = time[2] + 0, 4, 1000
  now = time[1] * 1000 + (server_micros - server_micros % 1000) / 1000
else
  now = now + 0
end
