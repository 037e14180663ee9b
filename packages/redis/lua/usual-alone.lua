-- The first thing that a call of usual.lua does: it decides one request of one policy and of cost 1, before anything else is defined.
use(tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
if not ARGV[7] then
  local key, value = KEYS[1], nil
  if READS_STRING then value = redis_pcall('GET', key) end
  if type(value) ~= 'table' then
    local x, y, _, denied = consume(key, 1, value)
    if x and x < 67108864 and y < 134217728 then
      local packed = x * 134217728 + y
      return { denied and -1 - packed or packed, now }
    elseif x then
      return { { denied and 0 or 1, x, y, 0 }, now }
    end
  end
end
