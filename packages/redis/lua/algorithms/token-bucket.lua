-- token-bucket: every unit raises a bucket by the window, and it drains by the limit every ms.
-- leaky-bucket has the same bucket.
-- Value: [u8 version = 1 or 2] [u32 incarnation] [u48 at ms] [u56 level, units · ms]
--        [u56 ms when it is empty] [u56 ms until which the key lives]
-- Version 2: the bucket will be empty earlier than its receipts say, since units were given back,
-- the limit was raised or the clock was set back. It must then continue in a new incarnation.
-- Usual states: usual/token-bucket.lua, which reads and writes the same format.
define['token-bucket'] = function()
  local PLAIN, SHIFTED, FORMAT, LENGTH = 1, 2, '<BI4I6I7I7I7', 32

  local bucket = {}

  function bucket.load(cell, key, policy)
    policy.capacity = policy.setting or policy.limit * policy.window
    cell.at, cell.level, cell.ends_at, cell.lives_until, cell.version = now, 0, 0, 0, PLAIN
    local value = read_string(cell, key, PLAIN, LENGTH, SHIFTED)
    if not value then return end
    local version, incarnation, at, level, ends_at, lives_until = unpack_struct(FORMAT, value)
    -- A level drains from `at` to its end, by at least one unit · ms per ms.
    local is_drained_in_time = at < ends_at and ends_at - at <= level and ends_at <= lives_until
    if not is_drained_in_time or level > MAX_SAFE or lives_until > MAX_SAFE then return reject() end
    -- Its time never goes back: otherwise it would drain twice in the same time.
    local latest = now + policy.window
    if at > latest then
      at, ends_at, lives_until, version = latest, latest + ends_at - at, latest + lives_until - at, SHIFTED
      cell.repaired = true
    end
    if now < ends_at then
      cell.incarnation, cell.ends_at, cell.lives_until, cell.version = incarnation, ends_at, lives_until, version
      cell.at = max(at, now)
      cell.level = max(0, level - (cell.at - at) * policy.limit)
    else
      cell.incarnation = version == SHIFTED and new_incarnation() or incarnation
    end
  end

  function bucket.persist(cell, policy)
    local ttl = cell.ends_at - now
    -- With a quarter more TTL than needed, several writes can leave it unchanged. A clock other
    -- than Redis's own may have been set back since, so it then sets the TTL every time.
    if is_server_clock then ttl = ttl + ceil(ttl / 4) end
    -- Receipts may have a later end.
    if cell.version == SHIFTED then ttl = max(ttl, cell.lives_until - now) end
    cell.lives_until = now + ttl
    local value = pack(FORMAT, cell.version, cell.incarnation, cell.at, cell.level, cell.ends_at, cell.lives_until)
    write_string(cell.key, value, ttl)
  end

  function bucket.fits(cell, policy)
    return floor((policy.capacity - cell.level) / policy.window)
  end

  function bucket.take(cell, policy, units)
    local raised = cell.level + units * policy.window
    cell.level = max(cell.level, min(raised, policy.capacity))
    local ends_at = cell.at + ceil(cell.level / policy.limit)
    local is_earlier = ends_at < cell.ends_at
    cell.ends_at = ends_at
    if is_earlier then cell.version = SHIFTED end
    if raised > policy.capacity then
      -- Units are lost: the key gets a new incarnation, so that no receipt applies to it, not even
      -- this one.
      cell.incarnation = new_incarnation()
      bucket.persist(cell, policy)
      cell.incarnation = new_incarnation()
    elseif not is_earlier and ends_at <= cell.lives_until and is_server_clock then
      redis_call('SETRANGE', cell.key, '5', pack('<I6I7I7', cell.at, cell.level, ends_at))
    else
      bucket.persist(cell, policy)
    end
  end

  -- Units drain first in, first out. Those of a request are gone at `at`, when the bucket would be
  -- empty.
  function bucket.give_back(cell, policy, units, at, refunded)
    local undrained = (at - cell.at) * policy.limit - refunded * policy.window
    local given = min(units * policy.window, cell.level, undrained)
    if given <= 0 then return end
    if cell.level == given then return bucket.clear(cell, policy) end
    cell.level = cell.level - given
    cell.ends_at = cell.at + ceil(cell.level / policy.limit)
    cell.version = SHIFTED
    bucket.persist(cell, policy)
  end

  function bucket.clear(cell, policy)
    -- The longest time that a bucket takes to drain.
    local longest = policy.limit > 0 and ceil(policy.capacity / policy.limit) or policy.window
    leave_mark(cell, max(longest, cell.lives_until - now))
    cell.at, cell.level, cell.ends_at, cell.lives_until, cell.version = now, 0, 0, 0, PLAIN
  end

  -- The level, and ms until it is empty.
  function bucket.report(cell)
    return cell.level, cell.level > 0 and cell.ends_at - now or 0, cell.at - now
  end

  return bucket
end
