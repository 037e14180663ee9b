-- sliding-log: stores every unit with its time: exact over any rolling window. A layout stores the
-- units; it is a table with
--   read(cell, key, policy)        reads what a key holds into cell.layout, cell.used and
--                                  cell.first, the time of the oldest live unit
--   persist, take, give_back       as in an algorithm (prelude.lua)
--   time_of(cell, policy, k)       returns the time of the k-th oldest live unit, from 1
define['sliding-log'] = function()
  local layouts, sliding_log = require_part('layouts'), {}

  -- A unit is recorded at `stamp`: rounded up, so that it never expires early. Units at or before
  -- `dead_until` have expired. The first unit of each quarter window, which begins at
  -- `share_start`, sets the TTL.
  local function set_times(policy)
    policy.resolution = policy.setting or 1
    policy.stamp = now + -now % policy.resolution
    policy.dead_until = now - policy.window
    policy.ttl = policy.window + ceil(policy.window / ttl_parts) + policy.resolution - 1 + ttl_margin
    policy.share_start = floor(policy.stamp * 4 / policy.window) * policy.window / 4
  end

  function sliding_log.load(cell, key, policy)
    if not policy.stamp then set_times(policy) end
    cell.key, cell.incarnation, cell.exists, cell.repaired = key, 0, true, false
    cell.used, cell.first = 0, nil
    layouts.read(cell, key, policy)
  end

  function sliding_log.persist(cell, policy) cell.layout.persist(cell, policy) end

  function sliding_log.fits(cell, policy) return policy.limit - cell.used end

  -- As in core.
  local function max_recorded(policy) return 2 * policy.limit + 1 end

  function sliding_log.take(cell, policy, units)
    -- The newest units are kept. A smaller limit, as for a request of another tier, keeps units
    -- taken under a larger one.
    local most = max(max_recorded(policy), cell.used)
    cell.layout.take(cell, policy, min(units, most), most)
  end

  -- A live unit is neither dead nor later than now, whatever its value.
  local function ms_until(policy, time)
    return min(max(time, policy.dead_until + 1), policy.stamp) + policy.window - now
  end

  -- Ms until the k-th oldest unit expires.
  local function ms_until_gone(cell, policy, k)
    return ms_until(policy, k == 1 and cell.first or cell.layout.time_of(cell, policy, k))
  end

  function sliding_log.wait(cell, policy, cost)
    local k = cell.used + cost - policy.limit
    if k <= 0 or cost > policy.limit then return 0 end
    return ms_until_gone(cell, policy, k)
  end

  function sliding_log.give_back(cell, policy, units, at)
    if cell.used == 0 or cell.used >= max_recorded(policy) or at <= policy.dead_until then return end
    cell.layout.give_back(cell, policy, units, at)
    -- An empty key ends its incarnation, so that no receipt applies to the next one.
    if cell.used == 0 then sliding_log.clear(cell, policy) end
  end

  function sliding_log.clear(cell, policy)
    leave_mark(cell, policy.resolution + policy.window)
    cell.used, cell.first = 0, nil
  end

  -- Units used, and ms until a unit expires and fewer than the limit count; 0 if none does.
  function sliding_log.report(cell, policy)
    local used, limit = cell.used, policy.limit
    if used == 0 or limit == 0 then return used, 0 end
    if used <= limit then return used, ms_until(policy, cell.first) end
    return used, ms_until_gone(cell, policy, used - limit + 1)
  end

  return sliding_log
end
