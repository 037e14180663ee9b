-- The usual states of a fixed window (algorithms/fixed-window.lua): absent, open, full, and over.
local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18

local function read_policy(at)
  return {
    limit = tonumber(ARGV[at]), window = tonumber(ARGV[at + 1]), aligned = ARGV[at + 2] == '1',
    margin = tonumber(ARGV[at + 3]),
  }
end

local function prepare(policy)
  policy.start = policy.aligned and now - now % policy.window or now
end

local function write_anew(policy, key, units, value)
  if units > policy.limit then return nil end
  local start = policy.start
  local anew, ttl = pack(FORMAT, VERSION, 0, start, units), start + policy.window - now + policy.margin
  -- A key that MGET shows as absent may hold something that is no string.
  if value then redis_call('SET', key, anew, 'PX', ttl)
  elseif not redis_call('SET', key, anew, 'PX', ttl, 'NX') then return nil end
  return units, now - start + 1, value
end

local function consume(policy, key, units, value)
  if not value then return write_anew(policy, key, units, false) end
  if #value ~= LENGTH then return nil end
  local version, incarnation, start, count = unpack_struct(FORMAT, value)
  if version ~= VERSION or incarnation > 0 or start > now then return nil end
  if now >= start + policy.window then return write_anew(policy, key, units, value) end
  if count + units > policy.limit then return count, now - start + 1, false, true end
  redis_call('SETRANGE', key, '11', pack('<I7', count + units))
  return count + units, now - start + 1, value
end

local function undo(key, before)
  if before then redis_call('SET', key, before, 'KEEPTTL') else redis_call('DEL', key) end
end

return { fields = 4, reads_string = true, read_policy = read_policy, prepare = prepare, consume = consume, undo = undo }
