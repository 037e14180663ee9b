-- Decides the requests of one call, in order, each all or nothing; later ones see what earlier ones took.
--
-- KEYS     the distinct keys of the call
-- ARGV[1]  number of the call, echoed, so that a reply can be told from one to another call
-- ARGV[2]  now in ms, or '' for the server's clock
-- ARGV[3]  margin in ms that a key outlives its last unit
-- ARGV[4]  u32 from which the incarnations of this call are counted: no two calls of a fleet should share one
-- ARGV[5]  the policies of the call:
--            [u8 algorithm] [u8 flags: 1 aligned, 2 counts denied] [u56 limit] [u56 window ms] [u56 resolution ms]
-- ARGV[6]  the requests: [u8 op] [u8 number of checks], then for each check [u16 policy] [u16 key] [u56 cost], both from 1,
--            and for a refund also [u56 time] [u32 incarnation] of the receipt
-- Returns  { number of the call, values that could not be read, then for each check:
--            retry ms (0 allowed, -1 never), remaining, reset ms, time taken (-1: nothing was), incarnation }
--
-- Algorithm and op numbers are those of src/call.ts.
local ALGORITHMS = { 'sliding-log', 'sliding-counter', 'fixed-window' }
local CONSUME, PEEK, CHARGE, REFUND, RESET = 1, 2, 3, 4, 5
local NEVER = math.huge

local now
if ARGV[2] == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
else
  now = tonumber(ARGV[2])
end
local ttl_margin = tonumber(ARGV[3])
next_incarnation = tonumber(ARGV[4])

local function decode_policies(packed)
  local policies, position = {}, 1
  while position <= #packed do
    local algorithm, flags, limit, window, resolution
    algorithm, flags, limit, window, resolution, position = unpack_struct('<BBI7I7I7', packed, position)
    policies[#policies + 1] = {
      algorithm = algorithms[ALGORITHMS[algorithm]],
      aligned = flags % 2 == 1,
      count_denied = flags >= 2,
      limit = limit,
      window = window,
      resolution = resolution,
    }
  end
  return policies
end

local policies = decode_policies(ARGV[5])
local cells, unreadable = {}, 0

-- The cell of a key is read once a call, so that every request sees what those before it took.
local function cell_of(check, key_number)
  local cell = cells[key_number]
  if not cell then
    cell = check.algorithm.load(KEYS[key_number])
    cells[key_number] = cell
    if cell.unreadable then unreadable = unreadable + 1 end
  end
  cell.check = check
  return cell
end

local function decode_request(packed, position)
  local op, count, checks = nil, nil, {}
  op, count, position = unpack_struct('<BB', packed, position)
  for i = 1, count do
    local policy_number, key_number, cost
    policy_number, key_number, cost, position = unpack_struct('<I2I2I7', packed, position)
    local policy = policies[policy_number]
    local check = {
      algorithm = policy.algorithm,
      aligned = policy.aligned,
      count_denied = policy.count_denied,
      limit = policy.limit,
      window = policy.window,
      resolution = policy.resolution,
      cost = cost,
      ttl_margin = ttl_margin,
    }
    if op == REFUND then
      check.at, check.incarnation, position = unpack_struct('<I7I4', packed, position)
    end
    check.cell = cell_of(check, key_number)
    checks[i] = check
  end
  return op, checks, position
end

-- How long a check has to wait for its units (core: waitMs).
local function wait_ms(check)
  if check.limit == 0 or check.cost > check.limit then return NEVER end
  if check.cost == 0 then return 0 end
  return check.algorithm.ms_until(check.cell, check, now, check.limit - check.cost)
end

-- Nothing is written for cost 0, nor where everything is blocked anyway (core: leavesTrace).
local function leaves_trace(check)
  return check.cost > 0 and check.limit > 0
end

local function take(check)
  check.taken_at = check.algorithm.take(check.cell, check, now)
end

local operations = {}

operations[CONSUME] = function(checks)
  local allowed = true
  for _, check in ipairs(checks) do
    check.wait = wait_ms(check)
    if check.wait > 0 then allowed = false end
  end
  for _, check in ipairs(checks) do
    if leaves_trace(check) then
      if allowed then
        take(check)
      elseif check.count_denied then
        check.algorithm.take(check.cell, check, now)
        check.wait = wait_ms(check)
      end
    end
  end
end

operations[PEEK] = function(checks)
  for _, check in ipairs(checks) do check.wait = wait_ms(check) end
end

operations[CHARGE] = function(checks)
  for _, check in ipairs(checks) do
    if leaves_trace(check) then take(check) end
  end
end

operations[REFUND] = function(checks)
  for _, check in ipairs(checks) do
    if check.cell.incarnation == check.incarnation then
      check.algorithm.give_back(check.cell, check, now, check.at)
    end
  end
end

operations[RESET] = function(checks)
  for _, check in ipairs(checks) do check.algorithm.clear(check.cell) end
end

local reply = { tonumber(ARGV[1]), 0 }

local function answer(check)
  local wait = check.wait or 0
  local used = check.algorithm.used(check.cell, check, now)
  local at = #reply
  reply[at + 1] = wait == NEVER and -1 or wait
  reply[at + 2] = max(0, check.limit - used)
  reply[at + 3] = check.algorithm.reset_ms(check.cell, check, now)
  reply[at + 4] = check.taken_at or -1
  reply[at + 5] = check.taken_at and check.cell.incarnation or 0
end

local requests, position = ARGV[6], 1
while position <= #requests do
  local op, checks
  op, checks, position = decode_request(requests, position)
  for _, check in ipairs(checks) do
    check.algorithm.settle(check.cell, check, now, op ~= PEEK)
  end
  operations[op](checks)
  for _, check in ipairs(checks) do answer(check) end
end

for _, cell in pairs(cells) do
  if cell.changed then cell.check.algorithm.save(cell, cell.check, now) end
end

reply[2] = unreadable
return reply
