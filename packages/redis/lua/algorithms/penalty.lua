-- penalty: counts strikes in a window that begins with the first one. Stores the block that they
-- caused, or that was set manually.
-- Value: [u8 version = 1] [u48 ms of the first strike] [u32 strikes]
--        [u48 ms until which the key is blocked] [u48 duration of the block when it was set]
--        [u48 duration of the last block caused by strikes]
-- Allowed requests only read it, and strikes cannot be refunded, so it needs no incarnation.
-- Usual states: usual/penalty.lua, which reads the same format.
define['penalty'] = function()
  local VERSION, FORMAT, LENGTH = 1, '<BI6I4I6I6I6', 29

  -- No block is longer than ten years (core: longestWindowMs).
  local LONGEST = 315360000000
  local penalty = { counts_only_denials = true }

  function penalty.load(cell, key)
    cell.since, cell.strikes, cell.blocked_until, cell.asked, cell.last = 0, 0, 0, 0, 0
    local value = read_string(cell, key, VERSION, LENGTH)
    if not value then return end
    local _, since, strikes, blocked_until, asked, last = unpack_struct(FORMAT, value)
    if asked > LONGEST or last > LONGEST or (blocked_until == 0) ~= (asked == 0) or strikes + asked == 0 then return reject() end
    cell.repaired = since > now or blocked_until > now + asked
    cell.since, cell.strikes = min(since, now), strikes
    cell.blocked_until, cell.asked, cell.last = min(blocked_until, now + asked), asked, last
  end

  local function is_open(cell, policy)
    return cell.strikes > 0 and now < cell.since + policy.window
  end

  -- The time from which the next block counts as a first one.
  local function forgotten_at(cell, policy)
    return cell.blocked_until + (cell.last > 0 and max(policy.window, cell.last) or 0)
  end

  function penalty.persist(cell, policy)
    local strikes_end_at = cell.strikes > 0 and cell.since + policy.window or 0
    local ttl = max(0, max(strikes_end_at, forgotten_at(cell, policy)) - now)
    local value = pack(FORMAT, VERSION, cell.since, cell.strikes, cell.blocked_until, cell.asked, cell.last)
    write_string(cell.key, value, ttl)
  end

  -- The cost does not matter: either all units fit or none.
  function penalty.fits(cell) return now < cell.blocked_until and 0 or MAX_SAFE end

  local function begin_block(cell, policy, duration)
    cell.strikes, cell.blocked_until, cell.asked = 0, now + duration, duration
    penalty.persist(cell, policy)
  end

  function penalty.take(cell, policy, strikes)
    if not policy.setting or now < cell.blocked_until then return end
    if not is_open(cell, policy) then cell.strikes, cell.since = 0, now end
    cell.strikes = cell.strikes + strikes
    if cell.strikes < policy.limit then return penalty.persist(cell, policy) end
    local last = now < forgotten_at(cell, policy) and cell.last or 0
    local block_for, factor, most = policy.setting:match('^(.+);(.+);(.+)$')
    cell.last = last == 0 and block_for + 0 or min(most + 0, floor(last * factor))
    begin_block(cell, policy, cell.last)
  end

  function penalty.give_back() end

  function penalty.block(cell, policy, duration)
    if now >= forgotten_at(cell, policy) then cell.last = 0 end
    begin_block(cell, policy, duration)
  end

  function penalty.clear(cell)
    redis_call('DEL', cell.key)
    cell.since, cell.strikes, cell.blocked_until, cell.asked, cell.last = 0, 0, 0, 0, 0
  end

  -- The strikes that count, and ms until the block ends.
  function penalty.report(cell, policy)
    if now < cell.blocked_until then return 0, cell.blocked_until - now end
    return is_open(cell, policy) and cell.strikes or 0, 0
  end

  return penalty
end
