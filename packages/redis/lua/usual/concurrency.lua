-- Decides the usual states of leases: there are none, or all are running.
-- Formats: algorithms/concurrency.lua.
-- setting: the lease to release, '-<number>:<units>', or to renew, '+<number>:<units>'. To take
-- units, it is a number or absent.
-- Formatting integers of up to 31 bits is much cheaper than others.
if lease_window ~= window then
  lease_window = window
  local ends_at = now + window
  lease_end = string.format('%d%06d', (ends_at - ends_at % 1000000) / 1000000, ends_at % 1000000)
  after_now = string.format('(%d%06d', (now - now % 1000000) / 1000000, now % 1000000)
end
local held, total = 0, redis.pcall('ZSCORE', key, '#')
if total then
  if type(total) ~= 'string' then break end
  held = -total
  -- If the leases between now and the latest end are as many as the units, there are no other
  -- leases, since each holds at least one unit.
  local running = redis_call('ZCOUNT', key, after_now, lease_end)
  if running < 1 or held < running or held > 9007199254740991 or held % 1 ~= 0 then break end
  if held > running and redis_call('ZCARD', key) ~= running + 1 then break end
elseif redis_call('EXISTS', key) == 1 then
  break
end
detail = 0
if type(setting) ~= 'string' then
  amount, denied = held, held + units > limit
  if not denied then
    -- include parts/lease-number
    amount, detail = held + units, lease_detail
    write, where, ttl = 'ZADD', string.format(amount < 2147483648 and '-%d' or '-%.0f', amount), window
    extra = lease_end
    if lease_number < 100000000 or units > 2147483647 then
      data = string.format('%.0f:%.0f', lease_number, units)
    else
      local low = lease_number % 100000000
      data = string.format('%d%08d:%d', (lease_number - low) / 100000000, low, units)
    end
  end
  break
end
local lease = setting:sub(2)
if setting:byte() == 43 then
  denied = not redis_call('ZSCORE', key, lease)
  if not denied then
    redis_call('ZADD', key, lease_end, lease)
    redis_call('PEXPIRE', key, window + ttl_margin)
  end
else
  denied = redis_call('ZREM', key, lease) == 0
  if not denied then
    held = held - lease:match(':(%d+)$')
    if held > 0 then redis_call('ZADD', key, string.format(held < 2147483648 and '-%d' or '-%.0f', held), '#') else redis_call('DEL', key) end
  end
end
amount = held
