-- granted-log: sliding-log plus the units that processes hold. The grants have the log's key plus a
-- tilde, declared in the second half of KEYS.
-- Value: [u8 version = 1], then for each grant, ordered by end:
--        [u48 ms of its end] [u48 units] [u56 id]
-- A grant that has ended is recorded in full before any other work on its key.
define['granted-log'] = function()
  local log, held_log = require_part('sliding-log'), {}

  -- policy.apart: the value on another node, in hex. The value on this node takes precedence.
  local function read_grants(cell, policy)
    cell.grants, cell.held = {}, 0
    local value = redis.pcall('GET', cell.grants_key)
    cell.is_apart = policy.apart ~= nil and type(value) ~= 'string'
    if cell.is_apart then value = policy.apart:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end) end
    if not value or value == '' then return end
    if type(value) ~= 'string' or value:byte(1) ~= 1 or (#value - 1) % 19 ~= 0 then return reject() end
    local grants = { unpack_struct('<' .. ('I6I6I7'):rep((#value - 1) / 19), value, 2) }
    -- The last number is the place after the value.
    grants[#grants] = nil
    local last_end, size = now + floor(policy.window / 10), 0
    for i = 1, #grants, 3 do
      local ends_at, units, id = grants[i], grants[i + 1], grants[i + 2]
      -- A grant that cannot be recorded here is held as long as its units would count.
      if not cell.is_apart or ends_at + policy.window + policy.resolution > now then
        cell.grants[size + 1], cell.grants[size + 2], cell.grants[size + 3] = min(ends_at, last_end), units, id
        size, cell.held = size + 3, cell.held + units
      end
    end
  end

  -- Puts the grants that are `added` behind those that end no later, and writes all.
  local function write_grants(cell, policy, added)
    local grants = cell.grants
    for i = 1, #added, 3 do
      local ends_at, place = added[i], #grants + 1
      while place > 1 and grants[place - 3] > ends_at do
        grants[place], grants[place + 1], grants[place + 2] = grants[place - 3], grants[place - 2], grants[place - 1]
        place = place - 3
      end
      grants[place], grants[place + 1], grants[place + 2] = ends_at, added[i + 1], added[i + 2]
    end
    local size = #grants
    if size == 0 then
      redis_call('DEL', cell.grants_key)
    else
      local value = pack('<B' .. ('I6I6I7'):rep(size / 3), 1, unpack(grants))
      local ttl = grants[size - 2] - now + policy.window + policy.resolution + ttl_margin
      redis_call('SET', cell.grants_key, value, 'PX', ttl)
    end
  end

  -- A copy of a policy with some fields replaced.
  local function altered(policy, fields) return setmetatable(fields, { __index = policy }) end

  -- Records all units, even if the limit was lowered after they were granted.
  local function record(cell, policy, units)
    log.take(cell, altered(policy, { limit = max(policy.limit, cell.used + units) }), units)
  end

  -- An expired grant is recorded at its end, or at the log's last unit if that is later: recorded
  -- times never decrease.
  local function record_ended(cell, key, policy)
    local grants, resolution, last = cell.grants, policy.resolution, 0
    if cell.is_apart or not grants[1] or grants[1] > now then return end
    if cell.repaired then log.persist(cell, policy) end
    if cell.used > 0 then last = cell.layout.time_of(cell, policy, cell.used) end
    repeat
      local ends_at, units = grants[1], grants[2]
      last = min(max(last, ends_at), now)
      local past = altered(policy, { stamp = ceil(last / resolution) * resolution })
      -- Entries whose units were all given back may be later.
      if cell.used > 0 then log.load(cell, key, past) end
      if cell.used > 0 and cell.repaired then log.persist(cell, past) end
      cell.repaired = false
      if past.stamp > policy.dead_until then record(cell, past, units) end
      for _ = 1, 3 do table.remove(grants, 1) end
      cell.held = cell.held - units
    until not grants[1] or grants[1] > now
    write_grants(cell, policy, {})
  end

  function held_log.load(cell, key, policy)
    policy.resolution = policy.setting or 1
    cell.grants_key = key .. '~'
    read_grants(cell, policy)
    log.load(cell, key, policy)
    record_ended(cell, key, policy)
  end

  held_log.persist, held_log.take, held_log.give_back = log.persist, log.take, log.give_back

  function held_log.fits(cell, policy) return log.fits(cell, policy) - cell.held end

  -- Ms until k units have expired: first taken units, then granted ones, counted from their ends.
  local function ms_until_gone(cell, policy, k)
    if k <= cell.used then return log.wait(cell, policy, k + policy.limit - cell.used) end
    local left = k - cell.used
    for i = 1, #cell.grants, 3 do
      left = left - cell.grants[i + 1]
      if left <= 0 then
        return ceil(cell.grants[i] / policy.resolution) * policy.resolution + policy.window - now
      end
    end
    return 0
  end

  function held_log.wait(cell, policy, cost)
    local k = cell.used + cell.held + cost - policy.limit
    if k <= 0 or cost > policy.limit then return 0 end
    return ms_until_gone(cell, policy, k)
  end

  function held_log.report(cell, policy)
    local total = cell.used + cell.held
    if total == 0 or policy.limit == 0 then return total, 0 end
    return total, ms_until_gone(cell, policy, max(1, total - policy.limit + 1))
  end

  -- Carries out what the `terms` of a call (grants.lua) say about grants, in one pass. Closed ones
  -- leave the list, and renewed ones go to `added`. Then grants up to `wanted` units. Returns the
  -- units granted, and whether spent units were recorded. A late or repeated call records nothing,
  -- since no more units are held than it names; `again` are the units that it got the first time.
  function held_log.settle(cell, policy, terms, wanted)
    if cell.is_apart then return 0, false end
    local grants, places, added, at, left = cell.grants, {}, {}, 4, 1
    local held, recorded, again, has_changed = 0, 0, nil, false
    while at <= #terms do
      local id = terms[at]
      places[max(id, -id)] = at
      at = at + (id < 0 and 3 or 2)
    end
    for i = 1, #grants, 3 do
      local ends_at, units, id = grants[i], grants[i + 1], grants[i + 2]
      local place = places[id]
      if place then
        local spent = min(terms[place + 1], units)
        has_changed = true
        if terms[place] < 0 then
          local rest = spent
          spent = units - terms[place + 1] - terms[place + 2]
          if rest > 0 then
            local size = #added
            added[size + 1], added[size + 2], added[size + 3] = max(now + terms[2], ends_at), rest, id
            held = held + rest
          end
        end
        recorded = recorded + max(0, spent)
      else
        if id == terms[1] then again = units end
        grants[left], grants[left + 1], grants[left + 2] = ends_at, units, id
        left, held = left + 3, held + units
      end
    end
    for i = #grants, left, -1 do grants[i] = nil end
    if recorded > 0 then record(cell, policy, recorded) end
    local room, size = policy.apart and 0 or policy.limit - cell.used - held, #added
    local granted = again or min(wanted, floor(room / terms[3]))
    -- No key has more than 1,000 grants.
    if not again and (granted <= 0 or #grants + size >= 3000) then granted = 0 end
    if not again and granted > 0 then
      added[size + 1], added[size + 2], added[size + 3] = now + terms[2], granted, terms[1]
      held, has_changed = held + granted, true
    end
    cell.held = held
    if has_changed then write_grants(cell, policy, added) end
    return granted, recorded > 0
  end

  function held_log.clear(cell, policy)
    if policy.terms and policy.terms[1] then held_log.settle(cell, policy, policy.terms, 0) end
    log.clear(cell, policy)
  end

  return held_log
end
