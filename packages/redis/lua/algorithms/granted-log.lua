-- granted-log: sliding-log plus the units that processes hold. The grants have the log's key plus a
-- tilde, declared in the second half of KEYS.
-- Value: [u8 version = 1], then for each grant, ordered by end:
--        [u48 ms of its end] [u48 units] [u56 id]
-- A grant that has ended is recorded in full before any other work on its key.
define['granted-log'] = function()
  local VERSION, FORMAT, SIZE, MAX_GRANTS = 1, '<I6I6I7', 19, 1000

  local log, held_log = require_part('sliding-log'), {}

  -- policy.apart: the value on another node, in hex. The value on this node takes precedence.
  local function read_grants(cell, policy)
    cell.grants, cell.held, cell.has_changed = {}, 0, false
    local value = redis.pcall('GET', cell.grants_key)
    cell.is_apart = policy.apart ~= nil and type(value) ~= 'string'
    if cell.is_apart then value = policy.apart:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end) end
    if not value or value == '' then return end
    if type(value) ~= 'string' or value:byte(1) ~= VERSION or (#value - 1) % SIZE ~= 0 then return reject() end
    local last_end = now + floor(policy.window / 10)
    for at = 2, #value, SIZE do
      local ends_at, units, id = unpack_struct(FORMAT, value, at)
      -- A grant that cannot be recorded here is held as long as its units would count.
      if not cell.is_apart or ends_at + policy.window + policy.resolution > now then
        cell.grants[#cell.grants + 1] = { ends_at = min(ends_at, last_end), units = units, id = id }
        cell.held = cell.held + units
      end
    end
  end

  local function write_grants(cell, policy)
    local parts, last = { string.char(VERSION) }, cell.grants[#cell.grants]
    if not last then return redis_call('DEL', cell.grants_key) end
    for i, grant in ipairs(cell.grants) do parts[i + 1] = pack(FORMAT, grant.ends_at, grant.units, grant.id) end
    local ttl = last.ends_at - now + policy.window + policy.resolution
    redis_call('SET', cell.grants_key, table.concat(parts), 'PX', ttl + ttl_margin)
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
    local first, last = cell.grants[1], 0
    if cell.is_apart or not first or first.ends_at > now then return end
    if cell.repaired then log.persist(cell, policy) end
    if cell.used > 0 then last = cell.layout.time_of(cell, policy, cell.used) end
    repeat
      last = min(max(last, first.ends_at), now)
      local past = altered(policy, { stamp = ceil(last / policy.resolution) * policy.resolution })
      -- Entries whose units were all given back may be later.
      if cell.used > 0 then log.load(cell, key, past) end
      if cell.used > 0 and cell.repaired then log.persist(cell, past) end
      cell.repaired = false
      if past.stamp > policy.dead_until then record(cell, past, first.units) end
      table.remove(cell.grants, 1)
      cell.held = cell.held - first.units
      first = cell.grants[1]
    until not first or first.ends_at > now
    write_grants(cell, policy)
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
    for _, grant in ipairs(cell.grants) do
      left = left - grant.units
      if left <= 0 then
        return ceil(grant.ends_at / policy.resolution) * policy.resolution + policy.window - now
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

  local function hold(cell, grant)
    local at = 1
    while cell.grants[at] and cell.grants[at].ends_at <= grant.ends_at do at = at + 1 end
    table.insert(cell.grants, at, grant)
    cell.held = cell.held + grant.units
  end

  -- Records the spent units of grants and frees the others. Returns whether any were recorded. Call
  -- `write` afterwards. `terms` alternates ids and spent units of closed grants. A negative id
  -- renews its grant for terms[2] ms; it is followed by the units left and the units that come
  -- back. A late or repeated call records nothing, since no more units are held than it names.
  function held_log.close(cell, policy, terms, from)
    if cell.is_apart then return false end
    local at, recorded = from, 0
    while at <= #terms do
      local id, spent = terms[at], terms[at + 1]
      for i, grant in ipairs(cell.grants) do
        if grant.id == id or grant.id == -id then
          table.remove(cell.grants, i)
          cell.held = cell.held - grant.units
          if id < 0 then
            local left = spent
            spent = grant.units - left - terms[at + 2]
            grant.units, grant.ends_at = min(grant.units, left), max(grant.ends_at, now + terms[2])
            if grant.units > 0 then hold(cell, grant) end
          else
            spent = min(spent, grant.units)
          end
          recorded, cell.has_changed = recorded + max(0, spent), true
          break
        end
      end
      at = at + (id < 0 and 3 or 2)
    end
    if recorded > 0 then record(cell, policy, recorded) end
    return recorded > 0
  end

  function held_log.clear(cell, policy)
    if policy.terms then held_log.close(cell, policy, policy.terms, 4) end
    held_log.write(cell, policy)
    log.clear(cell, policy)
  end

  -- Writes the grants changed by `close` and `grant`.
  function held_log.write(cell, policy)
    if cell.has_changed then write_grants(cell, policy) end
    cell.has_changed = false
  end

  -- Grants at most `units`. Returns the units granted; may be 0. Call `write` afterwards.
  function held_log.grant(cell, policy, wanted, id, life, divisor)
    if policy.apart then return 0 end
    for _, grant in ipairs(cell.grants) do
      -- The client sent the call twice.
      if grant.id == id then return grant.units end
    end
    local units = min(wanted, floor(held_log.fits(cell, policy) / divisor))
    if units <= 0 or #cell.grants >= MAX_GRANTS then return 0 end
    hold(cell, { ends_at = now + life, units = units, id = id })
    cell.has_changed = true
    return units
  end

  return held_log
end
