-- The usual states of a packed log with a high limit: live with one dead block at most, and full. Formats: algorithms/sliding-log-block-form.lua.
local READS_STRING = false
-- Stored times are modulo this, and so are differences: those of what lies behind are in the upper half.
local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888
local limit, window, ttl, stamp, cut

local function use(new_limit, new_window, resolution, new_ttl)
  limit, window, ttl, cut = new_limit, new_window, new_ttl, now - new_window
  local beyond = now % resolution
  stamp = beyond == 0 and now or now - beyond + resolution
end

local function consume(key, units)
  local tail = redis_pcall('LINDEX', key, '-1')
  if type(tail) ~= 'string' then return nil end
  local HEADER, ENTRY, TWO, header_size, size, full_size, span = block_layout(tail:byte(1))
  local length = #tail
  if not HEADER or length <= header_size or (length - header_size) % size ~= 0 or limit >= span / 2 then return nil end
  local version, incarnation = unpack_struct(HEADER, tail)
  local last, last_total = unpack_struct(ENTRY, tail, length - size + 1)
  -- As far after now as before the cut.
  local last_age = (stamp - last) % TIME_SPAN
  if incarnation > 0 or last_age >= stamp - cut then return nil end

  local head, dead = redis_call('LINDEX', key, '0'), false
  if #head <= header_size or (#head - header_size) % size ~= 0 or head:byte(1) ~= version then return nil end
  if ((unpack_struct(ENTRY, head, #head - size + 1)) - cut - 1) % TIME_SPAN >= HALF_SPAN then
    head, dead = redis_call('LINDEX', key, '1'), true
    if not head or #head <= header_size or (#head - header_size) % size ~= 0 or head:byte(1) ~= version then return nil end
    if ((unpack_struct(ENTRY, head, #head - size + 1)) - cut - 1) % TIME_SPAN >= HALF_SPAN then return nil end
  end
  -- The first live unit, its total, and the total before it.
  local low, high = 0, (#head - header_size) / size - 1
  while low < high do
    local middle = floor((low + high) / 2)
    local time = unpack_struct(ENTRY, head, header_size + 1 + middle * size)
    if (time - cut - 1) % TIME_SPAN >= HALF_SPAN then low = middle + 1 else high = middle end
  end
  local first, total, base, _
  if low == 0 then
    _, _, base = unpack_struct(HEADER, head)
    first, total = unpack_struct(ENTRY, head, header_size + 1)
  else
    _, base, first, total = unpack_struct(TWO, head, header_size + 1 + (low - 1) * size)
  end
  local used = (last_total - base) % span
  -- An entry that all units of were given back says nothing.
  if total == base then return nil end
  local until_next = min((first - cut) % TIME_SPAN + cut, stamp) + window - now
  if used + units > limit then
    if used + units ~= limit + 1 then return nil end
    return used, until_next, false, true
  end

  local added = pack(ENTRY, stamp % TIME_SPAN, (last_total + units) % span)
  if last_age == 0 then
    redis_call('LSET', key, '-1', tail:sub(1, length - size) .. added)
  elseif length < full_size then
    redis_call('LSET', key, '-1', tail .. added)
  else
    redis_call('RPUSH', key, pack(HEADER, version, 0, last_total) .. added)
  end
  if dead then redis_call('LPOP', key) end
  -- The time to live is set with the first unit of each quarter window.
  if stamp - last_age < floor(stamp * 4 / window) * window / 4 then redis_call('PEXPIRE', key, ttl) end
  return used + units, until_next, tail
end
