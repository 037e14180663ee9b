-- Decides the usual states of a bucket on the server's clock: absent, draining, full, and empty
-- again. Formats: algorithms/token-bucket.lua. With another clock the TTL is set every time, which
-- only the full algorithm does.
-- setting: the highest level, in units · ms; limit · window if absent.
-- include parts/read-string
local raised, capacity = units * window, setting or limit * window
if value then
  if #value ~= 32 then break end
  local version, incarnation, at, level, ends_at, lives_until = unpack_struct('<BI4I6I7I7I7', value)
  if version ~= 1 or incarnation > 0 or at > now or level > 9007199254740991 then break end
  if at >= ends_at or ends_at - at > level or ends_at > lives_until then break end
  if now < ends_at then
    level = level - (now - at) * limit
    if level < 0 then level = 0 end
    -- Written under another limit: the delay of a queued request then depends on both numbers.
    if ends_at - now ~= math.ceil(level / limit) then break end
    if level + raised > capacity then
      amount, detail, denied = level, ends_at - now, true
      break
    end
    raised = level + raised
    ends_at = now + math.ceil(raised / limit)
    if ends_at <= lives_until then
      amount, detail = raised, ends_at - now
      write, where, data = 'SETRANGE', '5', pack('<I6I7I7', now, raised, ends_at)
      break
    end
    -- The key needs a longer TTL.
  end
end
if raised > capacity then break end
-- With a quarter more TTL than needed, several writes can leave it unchanged.
local drains = math.ceil(raised / limit)
local life = drains + math.ceil(drains / 4)
amount, detail = raised, drains
write, data, ttl = 'SET', pack('<BI4I6I7I7I7', 1, 0, now, raised, now + drains, now + life), life
