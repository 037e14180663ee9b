-- Decides one request, all or nothing. This is the end of the function in prelude.lua.

-- The cells of a request, one per policy. A duplicate key has one cell.
local pool, cells = {}, {}
local function load_request(policies, first_key, keep)
  for i = 1, #policies do
    local key, policy = KEYS[first_key + i], policies[i]
    local cell = pool[i]
    if not cell then
      cell = {}
      pool[i] = cell
    end
    for j = 1, i - 1 do
      if cells[j].key == key then cell = cells[j] end
    end
    if cell == pool[i] then
      policy.algorithm.load(cell, key, policy)
    end
    cells[i] = cell
  end
  if not keep then return end
  -- Nothing is written before all keys of the request have been read.
  for i = 1, #policies do
    local cell = cells[i]
    if cell.repaired and cell == pool[i] then policies[i].algorithm.persist(cell, policies[i]) end
  end
end

local function fits(cell, policy, cost)
  return policy.limit > 0 and (cost == 0 or policy.algorithm.fits(cell, policy) >= cost)
end

-- As in core: cost 0 and limit 0 write nothing.
local function leaves_trace(policy, cost) return cost > 0 and policy.limit > 0 end

-- @param explicit_ms  ms to wait or to be held, if only the script knows
-- @param had_room     true for a policy that has counted a denial by another
local function answer(cell, policy, allowed, explicit_ms, had_room)
  local amount, detail, ahead_ms = policy.algorithm.report(cell, policy)
  if ahead_ms == 0 then ahead_ms = nil end
  if cell.incarnation == 0 and not explicit_ms and not ahead_ms and not had_room then
    reply[#reply + 1] = report_of(allowed, amount, detail)
  else
    reply[#reply + 1] = { allowed and 1 or had_room and 2 or 0, exact(amount), detail, cell.incarnation, explicit_ms or 0, ahead_ms }
  end
end

local rooms = {}
local function consume(policies, costs, at, may_take)
  local allowed = true
  for i = 1, #policies do
    rooms[i] = fits(cells[i], policies[i], costs[at + i])
    allowed = allowed and rooms[i]
  end
  for i = 1, #policies do
    local cell, policy, cost = cells[i], policies[i], costs[at + i]
    local algorithm, explicit_ms, had_room = policy.algorithm, nil, false
    if allowed then
      if algorithm.delay then explicit_ms = cost > 0 and algorithm.delay(cell, policy) or 0 end
      if may_take and not algorithm.counts_only_denials and leaves_trace(policy, cost) then
        algorithm.take(cell, policy, cost)
      end
    else
      if may_take and policy.count_denied and leaves_trace(policy, cost) then
        algorithm.take(cell, policy, cost)
        had_room = rooms[i] and not algorithm.counts_only_denials
      end
      if algorithm.wait then explicit_ms = policy.limit > 0 and cost > 0 and algorithm.wait(cell, policy, cost) or 0 end
    end
    answer(cell, policy, allowed, explicit_ms, had_room)
  end
end

-- Returns an operation that changes one key after the other. If `change` returns false, there was
-- nothing to change, which is reported like a denial.
local function each(change)
  return function(policies, costs, at, receipts)
    for i = 1, #policies do
      local cell, policy = cells[i], policies[i]
      local found = change(cell, policy, costs[at + i], receipts, 3 * (at + i))
      answer(cell, policy, found ~= false, policy.algorithm.delay and 0)
    end
  end
end

local give_back = each(function(cell, policy, cost, receipts, at)
  local time, incarnation, refunded = receipts[at - 2], receipts[at - 1], receipts[at]
  if not policy.algorithm.renew and cell.incarnation ~= incarnation then return false end
  local before = policy.algorithm.report(cell, policy)
  policy.algorithm.give_back(cell, policy, cost, time, refunded)
  return policy.algorithm.report(cell, policy) < before
end)

local operations = {
  consume = function(policies, costs, at) consume(policies, costs, at, true) end,
  peek = function(policies, costs, at) consume(policies, costs, at, false) end,
  charge = each(function(cell, policy, cost)
    if leaves_trace(policy, cost) then policy.algorithm.take(cell, policy, cost) end
  end),
  refund = give_back,
  release = give_back,
  renew = each(function(cell, policy, cost, receipts, at)
    local renew = policy.algorithm.renew
    return renew and renew(cell, policy, cost, receipts[at - 2]) or false
  end),
  -- True if the key had taken anything that counts, or was blocked.
  reset = each(function(cell, policy)
    local algorithm = policy.algorithm
    local room, strikes = algorithm.fits(cell, policy), algorithm.counts_only_denials and algorithm.report(cell, policy) or 0
    algorithm.clear(cell, policy)
    return algorithm.fits(cell, policy) > room or strikes > 0
  end),
  block = each(function(cell, policy, cost)
    if not policy.algorithm.block then return false end
    local _, blocked_ms = policy.algorithm.report(cell, policy)
    policy.algorithm.block(cell, policy, cost)
    return blocked_ms > 0
  end),
}

-- Errors of a server that rejects writes or forbids a command: the whole call fails.
local REFUSALS = {
  'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOPERM', 'NOAUTH', 'LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'MOVED', 'ASK ',
  'CROSSSLOT', 'read only', 'maxmemory', 'not allowed', "can't run", 'nknown',
}

-- Other errors fail only their request: others are already counted. Its reports: { -1, reason }.
local function fail_request(problem, width, size_before)
  local reason = type(problem) == 'table' and problem.err or tostring(problem)
  for _, refusal in ipairs(REFUSALS) do
    if reason:find(refusal, 1, true) then error(problem, 0) end
  end
  for i = size_before + 1, max(#reply, size_before + width) do
    reply[i] = i <= size_before + width and { -1, reason } or nil
  end
end

local function apply_request(op, policies, first_key, costs, at, receipts)
  for i = 1, #policies do
    if type(policies[i].algorithm) == 'string' then policies[i].algorithm = require_part(policies[i].algorithm) end
  end
  load_request(policies, first_key, op ~= 'peek')
  operations[op](policies, costs, at, receipts)
end

local function decide_request(op, policies, first_key, costs, at, receipts)
  local size_before = #reply
  local is_decided, problem = pcall(apply_request, op, policies, first_key, costs, at, receipts)
  if not is_decided then fail_request(problem, #policies, size_before) end
end

-- GRANTS
return decide_request, function() return unreadable end
