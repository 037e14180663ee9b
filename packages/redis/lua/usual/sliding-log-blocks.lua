-- Decides the usual states of a packed log with a high limit: full, and live with at most one dead
-- block. Formats: algorithms/sliding-log-blocks.lua. Stored times and differences are modulo 2^40
-- ms: a difference in the upper half is negative.
-- setting: the resolution in ms; 1 if absent.
local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888
local tail = redis.pcall('LINDEX', key, '-1')
if type(tail) ~= 'string' then break end
local dead_until, resolution = now - window, setting or 1
local stamp = now + -now % resolution
local version, length = tail:byte(1), #tail
-- include parts/block-layout
if (version ~= 1 and version ~= 2) or length <= size or length % size ~= 0 or limit >= span / 2 then break end
local _, incarnation = unpack_struct(header, tail)
local last, last_total = unpack_struct(entry, tail, length - size + 1)
-- A last time that has expired or is after now is unusual.
local last_age = (stamp - last) % TIME_SPAN
if incarnation > 0 or last_age >= stamp - dead_until then break end

local head = redis_call('LINDEX', key, '0')
if #head <= size or #head % size ~= 0 or head:byte(1) ~= version then break end
if (unpack_struct(entry, head, #head - size + 1) - dead_until - 1) % TIME_SPAN >= HALF_SPAN then
  head, extra = redis_call('LINDEX', key, '1'), true
  if not head or #head <= size or #head % size ~= 0 or head:byte(1) ~= version then break end
  if (unpack_struct(entry, head, #head - size + 1) - dead_until - 1) % TIME_SPAN >= HALF_SPAN then break end
end
-- The first live unit, its total, and the total before it.
local low, high = 0, #head / size - 2
while low < high do
  local middle = (low + high - (low + high) % 2) / 2
  local time = unpack_struct(entry, head, 1 + (middle + 1) * size)
  if (time - dead_until - 1) % TIME_SPAN >= HALF_SPAN then low = middle + 1 else high = middle end
end
local base, first, total = unpack_struct(both, head, 6 + low * size)
local used = (last_total - base) % span + units
-- An entry whose units were all given back is unusual.
if total == base then break end
first = (first - dead_until) % TIME_SPAN + dead_until
detail = (first > stamp and stamp or first) + window - now
if used > limit then
  if used == limit + 1 then amount, denied = used - units, true end
  break
end

amount, write = used, 'LSET'
data = pack(entry, stamp % TIME_SPAN, (last_total + units) % span)
if last_age == 0 then where, data = '-1', tail:sub(1, length - size) .. data
elseif length < full_size then where, data = '-1', tail .. data
else write, data = 'RPUSH', pack(header, version, 0, last_total) .. data end
-- The first unit of each quarter window sets the TTL.
if (stamp - last_age) * 4 < stamp * 4 - stamp * 4 % window then ttl = window + math.ceil(window / ttl_parts) + resolution - 1 end
