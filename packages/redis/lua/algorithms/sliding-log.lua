-- sliding-log: every unit with its time, exact over any rolling window. How the units are stored is a layout's affair: a table with
--   read(cell, key, policy)        what a key holds, with cell.layout, with used, and with first: the time of the oldest live unit
--   persist, take, give_back
--   time_of(cell, policy, k)       the time of the k-th oldest live unit, from 1
if needed['sliding-log'] then
  -- The time under which a unit taken now is recorded: rounded up, so that it never leaves too early.
  local function recorded_at(resolution)
    local beyond = now % resolution
    if beyond == 0 then return now end
    return now - beyond + resolution
  end

  -- Keys live a share of the window longer than they must, so that their time to live has to be set only with the first unit of such a
  -- share. A clock that is not Redis' own may be set back within one.
  plain['sliding-log'] = function(policy)
    local share, slack = policy.window / 4, ceil(policy.window / (call.isServerClock and 4 or 2))
    policy.stamp = recorded_at(policy.resolution)
    policy.cut = now - policy.window
    policy.ttl = policy.stamp - now + policy.window + slack + ttl_margin
    policy.share_start = floor(policy.stamp / share) * share
    if plain.log then return plain.log(policy) end
  end

  define['sliding-log'] = function()
    local layouts, sliding_log = whole('layouts'), {}

    function sliding_log.load(cell, key, policy)
      cell.key, cell.incarnation, cell.exists, cell.repaired = key, 0, true, false
      cell.used, cell.first = 0, nil
      layouts.read(cell, key, policy)
    end

    function sliding_log.persist(cell, policy)
      cell.layout.persist(cell, policy)
    end

    function sliding_log.fits(cell, policy)
      return policy.limit - cell.used
    end

    -- The most units that a log records (core: maxRecorded).
    local function max_recorded(policy)
      return 2 * policy.limit + 1
    end

    function sliding_log.take(cell, policy, units)
      -- The newest units are kept. A smaller limit, as of a request of another tier, does not forget what was taken under a larger one.
      local most = max(max_recorded(policy), cell.used)
      cell.layout.take(cell, policy, min(units, most), most)
    end

    -- A live unit is neither dead, nor taken after now, whatever its value says.
    local function ms_until(policy, time)
      return min(max(time, policy.cut + 1), policy.stamp) + policy.window - now
    end

    -- Until the k-th oldest unit has left.
    local function ms_until_gone(cell, policy, k)
      return ms_until(policy, k == 1 and cell.first or cell.layout.time_of(cell, policy, k))
    end

    function sliding_log.wait(cell, policy, cost)
      local k = cell.used + cost - policy.limit
      if k <= 0 or cost > policy.limit then return 0 end
      return ms_until_gone(cell, policy, k)
    end

    function sliding_log.give_back(cell, policy, units, at)
      if cell.used == 0 or cell.used >= max_recorded(policy) or at <= policy.cut then return end
      cell.layout.give_back(cell, policy, units, at)
      -- A key that nothing is left of ends its life, so that no receipt reaches what comes after.
      if cell.used == 0 then sliding_log.clear(cell, policy) end
    end

    function sliding_log.clear(cell, policy)
      leave_mark(cell, policy.resolution + policy.window)
      layouts.forget(cell)
    end

    -- Units used, and ms until one unit fewer counts than now, and fewer than the limit; 0 when none does.
    function sliding_log.report(cell, policy)
      local used, limit = cell.used, policy.limit
      if used == 0 or limit == 0 then return used, 0 end
      if used <= limit then return used, ms_until(policy, cell.first) end
      return used, ms_until_gone(cell, policy, used - limit + 1)
    end

    return sliding_log
  end
end
