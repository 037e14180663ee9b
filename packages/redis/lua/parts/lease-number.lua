-- Creates the number of a new lease, unique for its key, from the time of the call and
-- `lease_detail`, which is reported. A caller's clock may stand still, so the caller counts.
lease_count = lease_count + 1
local lease_detail = server_micros and server_micros % 1000 + lease_count or (call_text:match('%d+$') + lease_count) % 67108864
local lease_number = now % 4398046511104 * 1000 + lease_detail
