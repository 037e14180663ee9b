-- Decides the requests of one call, in order, each all or nothing; later ones see what earlier ones took.
--
-- KEYS     the keys of all rows, one after the other
-- ARGV[1]  the call as JSON, which src/call.ts writes:
--   { number, now?, isServerClock, ttlMargin, incarnation,
--     policies: [{ algorithm, limit, window, capacity, resolution, aligned, count_denied, block_for?, block_factor?, block_most? }],
--     groups: [{ op, shape, rows, repeats?, costs?, counts?, receipts? }] }
--   number       of the call, echoed, so that a reply can be told from one to another call
--   now          ms; left out for the server's clock
--   ttlMargin    ms that a key outlives its last unit at least
--   incarnation  u32 from which those of this call are counted: no two calls of a fleet should share one
--   shape        the policies of each request of the group, numbers from 1
--   rows         how many requests the group has; a row has a key for each policy of the shape
--   repeats      whether a key occurs more than once in the group
--   costs        of each key of each row; left out where all are 1
--   counts       how many equal requests each row stands for; left out where all are 1
--   receipts     of each key of each row: time, incarnation, and units that were given back before
-- Returns  { number, now, values that could not be read,
--            for each key of each row a report; after it, in some cases, ms to wait, or to be held,
--            for each row of which not all requests are allowed: its number, from 1, and how many are,
--            and how many such rows there are;
--            where rows failed, which count as rows of which −1 are allowed, and have no reports: why the first of them did }
-- For renew, refund, release, reset and block, the incarnation of a report is 1 where there was anything to settle, and 0 elsewhere.
-- A report is one integer, x · 2^27 + y, of what the algorithm reports; or −1, x, y; or −2, x, y, incarnation.
local policies = call.policies
for _, policy in ipairs(policies) do
  local prepare = plain[policy.algorithm]
  if prepare then policy.consume, policy.undo = prepare(policy) end
end

local X_SPAN, Y_SPAN = 67108864, 134217728
local reply, size = { call.number, now, 0 }, 3
local refused, refusals = {}, 0
local row_number = 0

local function report(x, y, incarnation)
  if incarnation == 0 and x < X_SPAN and y < Y_SPAN then
    size = size + 1
    reply[size] = x * Y_SPAN + y
    return
  end
  reply[size + 1], reply[size + 2], reply[size + 3] = incarnation == 0 and -1 or -2, x, y
  size = size + 3
  if incarnation ~= 0 then
    size = size + 1
    reply[size] = incarnation
  end
end

-- What decides any row: defined when the first one is not in a usual state.
define.row = function()
  -- The cells of a row. What stands twice in it is one cell.
  local pool, cells = {}, {}
  local function load_row(shape, first_key, keep)
    for i = 1, #shape do
      local key, policy = KEYS[first_key + i], shape[i]
      local cell = pool[i]
      if not cell then
        cell = {}
        pool[i] = cell
      end
      for j = 1, i - 1 do
        if cells[j].key == key then cell = cells[j] end
      end
      if cell == pool[i] then
        local algorithm = policy.algorithm
        algorithm.load(cell, key, policy)
      end
      cells[i] = cell
    end
    if not keep then return end
    -- Nothing is written before all of the row has been read.
    for i = 1, #shape do
      local cell = cells[i]
      if cell.repaired and cell == pool[i] then shape[i].algorithm.persist(cell, shape[i]) end
    end
  end

  -- How many of `count` requests of one cost fit (core: waitMs).
  local function fitting(cell, policy, cost, count)
    if policy.limit == 0 then return 0 end
    if cost == 0 then return count end
    local fits = policy.algorithm.fits(cell, policy)
    if fits >= cost * count then return count end
    return max(0, floor(fits / cost))
  end

  -- Nothing is written for cost 0, nor where everything is blocked anyway (core: leavesTrace).
  local function leaves_trace(policy, cost)
    return cost > 0 and policy.limit > 0
  end

  local function answer(cell, policy, more, flag)
    local x, y = policy.algorithm.report(cell, policy)
    report(x, y, flag or cell.incarnation)
    if more then
      size = size + 1
      reply[size] = more
    end
  end

  local function consume(shape, costs, at, count, may_take)
    local allowed = count
    for i = 1, #shape do
      allowed = fitting(cells[i], shape[i], costs and costs[at + i] or 1, allowed)
    end
    if allowed < count then
      refused[refusals + 1], refused[refusals + 2] = row_number, allowed
      refusals = refusals + 2
    end
    for i = 1, #shape do
      local cell, policy, cost = cells[i], shape[i], costs and costs[at + i] or 1
      local algorithm, more = policy.algorithm, nil
      if allowed > 0 then
        if algorithm.delay then more = cost > 0 and algorithm.delay(cell, policy) or 0 end
        if may_take and not algorithm.counts_only_denials and leaves_trace(policy, cost) then
          algorithm.take(cell, policy, cost * allowed)
        end
      elseif may_take and policy.count_denied and leaves_trace(policy, cost) then
        algorithm.take(cell, policy, cost)
      end
      if allowed < count and algorithm.wait then
        more = policy.limit > 0 and cost > 0 and algorithm.wait(cell, policy, cost) or 0
      end
      answer(cell, policy, more)
    end
  end

  -- One key after the other. Where settle returns whether there was anything to settle, 1 or 0 stands for the incarnation.
  local function each(settle)
    return function(group, shape, at)
      for i = 1, #shape do
        local cell, policy = cells[i], shape[i]
        local found = settle(cell, policy, group.costs and group.costs[at + i] or 1, group.receipts, 3 * (at + i))
        local flag = nil
        if found ~= nil then flag = found and 1 or 0 end
        answer(cell, policy, policy.algorithm.delay and 0, flag)
      end
    end
  end

  local give_back = each(function(cell, policy, cost, receipts, at)
    local time, incarnation, refunded = receipts[at - 2], receipts[at - 1], receipts[at]
    if policy.algorithm.renew or cell.incarnation == incarnation then
      local before = policy.algorithm.report(cell, policy)
      policy.algorithm.give_back(cell, policy, cost, time, refunded)
      return policy.algorithm.report(cell, policy) < before
    end
    return false
  end)

  -- Whether a key has taken anything that counts, or is blocked.
  local nothing = { used = 0, current = 0, previous = 0, count = 0, level = 0, blocked_until = 0 }
  local function holds(cell, policy)
    local algorithm = policy.algorithm
    if algorithm.fits(cell, policy) < algorithm.fits(nothing, policy) then return true end
    return algorithm.counts_only_denials and algorithm.report(cell, policy) > 0 or false
  end

  local operations = {
    consume = function(group, shape, at, row)
      consume(shape, group.costs, at, group.counts and group.counts[row] or 1, true)
    end,
    peek = function(group, shape, at) consume(shape, group.costs, at, 1, false) end,
    charge = each(function(cell, policy, cost)
      if leaves_trace(policy, cost) then policy.algorithm.take(cell, policy, cost) end
    end),
    refund = give_back,
    release = give_back,
    renew = each(function(cell, policy, cost, receipts, at)
      local renew = policy.algorithm.renew
      return renew and renew(cell, policy, cost, receipts[at - 2]) or false
    end),
    reset = each(function(cell, policy)
      local held = holds(cell, policy)
      policy.algorithm.clear(cell, policy)
      return held
    end),
    block = each(function(cell, policy, cost)
      if not policy.algorithm.block then return false end
      local _, blocked_ms = policy.algorithm.report(cell, policy)
      policy.algorithm.block(cell, policy, cost)
      return blocked_ms > 0
    end),
  }

  return function(group, shape, first_key, at, row)
    for i = 1, #shape do
      if type(shape[i].algorithm) == 'string' then shape[i].algorithm = whole(shape[i].algorithm) end
    end
    load_row(shape, first_key, group.op ~= 'peek')
    operations[group.op](group, shape, at, row)
  end
end

-- Consumes a row as far as all of its keys are in the usual state and have room; else it changes nothing.
local xs, ys, befores = {}, {}, {}
local function consume_plainly(shape, first_key, costs, at, count, values, first_value)
  local width = #shape
  for i = 1, width do
    local policy, key, value = shape[i], KEYS[first_key + i], nil
    local units = (costs and costs[at + i] or 1) * count
    if policy.reads_string then
      if values then value = values[first_value + i] else value = redis_pcall('GET', key) end
    end
    local x, y, before = nil, nil, nil
    if units > 0 and type(value) ~= 'table' then x, y, before = policy.consume(key, units, value) end
    if not x then
      for j = i - 1, 1, -1 do shape[j].undo(KEYS[first_key + j], befores[j]) end
      return false
    end
    xs[i], ys[i], befores[i] = x, y, before
  end
  for i = 1, width do report(xs[i], ys[i], 0) end
  return true
end

-- Whether rows can be consumed plainly, and whether their values can be read before any of them is decided.
local function is_plain(group, shape)
  local is_readable = not group.repeats
  for i = 1, #shape do
    if not shape[i].consume then return false, false end
    is_readable = is_readable and shape[i].reads_string
  end
  return group.op == 'consume', is_readable
end

-- The most values that are read at once: arguments have to fit the stack of Lua.
local MOST_READ = 256

local function decide_row(group, shape, plain, first_key, at, row, values, first_value)
  local count = group.counts and group.counts[row] or 1
  if plain and consume_plainly(shape, first_key, group.costs, at, count, values, first_value) then return end
  whole('row')(group, shape, first_key, at, row)
end

-- What the server says when it takes no writes, or forbids a command: then it decides nothing, and the call fails as a whole.
local REFUSALS = {
  'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOPERM', 'NOAUTH', 'LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'MOVED', 'ASK ',
  'CROSSSLOT', 'read only', 'maxmemory', 'not allowed', "can't run", 'nknown',
}

-- A row that fails with anything else fails alone: the others have counted, or will.
local failure
local function fail_row(problem, size_before, refusals_before)
  local reason = type(problem) == 'table' and problem.err or tostring(problem)
  for _, refusal in ipairs(REFUSALS) do
    if reason:find(refusal, 1, true) then error(problem, 0) end
  end
  failure = failure or reason
  size, refusals = size_before, refusals_before + 2
  refused[refusals - 1], refused[refusals] = row_number, -1
end

local first_key = 0
for _, group in ipairs(call.groups) do
  local shape = {}
  for i, number in ipairs(group.shape) do shape[i] = policies[number] end
  local width, at = #shape, 0
  local plain, is_readable = is_plain(group, shape)
  local values, first_value, rows_read = nil, 0, 0
  for row = 1, group.rows do
    row_number = row_number + 1
    if plain and is_readable and row > rows_read then
      local rows = min(group.rows - rows_read, max(1, floor(MOST_READ / width)))
      values, first_value = redis_call('MGET', unpack(KEYS, first_key + 1, first_key + rows * width)), 0
      rows_read = rows_read + rows
    end
    local size_before, refusals_before = size, refusals
    local is_decided, problem = pcall(decide_row, group, shape, plain, first_key, at, row, values, first_value)
    if not is_decided then fail_row(problem, size_before, refusals_before) end
    first_key, first_value = first_key + width, first_value + width
    at = at + width
  end
end

reply[3] = unreadable
for i = 1, refusals do reply[size + i] = refused[i] end
reply[size + refusals + 1] = refusals / 2
for i = size + refusals + 2, #reply do reply[i] = nil end
reply[size + refusals + 2] = failure
return reply
