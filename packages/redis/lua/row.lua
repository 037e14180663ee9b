-- Decides one request, all or nothing. It is the end of the function that prelude.lua begins.
--
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
      if cell.repaired and keep then algorithm.persist(cell, policy) end
    end
    cells[i] = cell
  end
end

-- Whether the units of a check fit (core: waitMs).
local function fits(cell, policy, cost)
  if policy.limit == 0 then return false end
  return cost == 0 or policy.algorithm.fits(cell, policy) >= cost
end

-- Nothing is written for cost 0, nor where everything is blocked anyway (core: leavesTrace).
local function leaves_trace(policy, cost)
  return cost > 0 and policy.limit > 0
end

-- @param more  ms to wait, or to be held, where only the script can tell
local function answer(cell, policy, allowed, more)
  local x, y = policy.algorithm.report(cell, policy)
  if cell.incarnation == 0 and not more then reply[#reply + 1] = report_of(allowed, x, y)
  else reply[#reply + 1] = { allowed and 1 or 0, x, y, cell.incarnation, more or 0 } end
end

local function consume(shape, costs, at, may_take)
  local allowed = true
  for i = 1, #shape do
    allowed = allowed and fits(cells[i], shape[i], costs and costs[at + i] or 1)
  end
  for i = 1, #shape do
    local cell, policy, cost = cells[i], shape[i], costs and costs[at + i] or 1
    local algorithm, more = policy.algorithm, nil
    if allowed then
      if algorithm.delay then more = cost > 0 and algorithm.delay(cell, policy) or 0 end
      if may_take and not algorithm.counts_only_denials and leaves_trace(policy, cost) then
        algorithm.take(cell, policy, cost)
      end
    else
      if may_take and policy.count_denied and leaves_trace(policy, cost) then algorithm.take(cell, policy, cost) end
      if algorithm.wait then more = policy.limit > 0 and cost > 0 and algorithm.wait(cell, policy, cost) or 0 end
    end
    answer(cell, policy, allowed, more)
  end
end

-- One key after the other. What `settle` returns says whether a check is allowed; nothing: it is.
local function each(settle)
  return function(shape, costs, at, receipts)
    for i = 1, #shape do
      local cell, policy = cells[i], shape[i]
      local allowed = settle(cell, policy, costs and costs[at + i] or 1, receipts, 2 * (at + i))
      answer(cell, policy, allowed ~= false, policy.algorithm.delay and 0)
    end
  end
end

local give_back = each(function(cell, policy, cost, receipts, at)
  local time, incarnation = receipts[at - 1], receipts[at]
  if policy.algorithm.renew or cell.incarnation == incarnation then
    policy.algorithm.give_back(cell, policy, cost, time)
  end
end)

local operations = {
  consume = function(shape, costs, at) consume(shape, costs, at, true) end,
  peek = function(shape, costs, at) consume(shape, costs, at, false) end,
  charge = each(function(cell, policy, cost)
    if leaves_trace(policy, cost) then policy.algorithm.take(cell, policy, cost) end
  end),
  refund = give_back,
  release = give_back,
  renew = each(function(cell, policy, cost, receipts, at)
    local renew = policy.algorithm.renew
    return renew ~= nil and renew(cell, policy, cost, receipts[at - 1])
  end),
  reset = each(function(cell, policy) policy.algorithm.clear(cell, policy) end),
  block = each(function(cell, policy, cost)
    if policy.algorithm.block then policy.algorithm.block(cell, policy, cost) end
  end),
}

local function decide_row(op, shape, first_key, costs, at, receipts)
  for i = 1, #shape do
    if type(shape[i].algorithm) == 'string' then shape[i].algorithm = whole(shape[i].algorithm) end
  end
  load_row(shape, first_key, op ~= 'peek')
  operations[op](shape, costs, at, receipts)
end

-- How many stored values could not be read, after all rows.
local function unreadable_values()
  return unreadable
end

return decide_row, unreadable_values
