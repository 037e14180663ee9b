// `npm run build:lua` writes this file from packages/redis/lua.

/** A module that decides a key in a usual state. Its variables end in a suffix. */
export type Module = (suffix: string) => string

export const suffixOf = (n: number, length: number): string => (length > 1 ? '_' + n : '')

const each = (modules: readonly Module[], text: (n: number, suffix: string, decide: Module) => string): string =>
  modules.map((decide, i) => text(i + 1, suffixOf(i + 1, modules.length), decide)).join('\n')

export const deadline = `local deadline_ms, clock = table.remove(ARGV) + 0, redis.call('TIME')
if not (clock[1] * 1000 + clock[2] / 1000 < deadline_ms) then
return redis.error_reply('LATE the deadline of this change has passed')
end`

export const grants = `function operations.grant(policies, costs, at, receipts)
for i = 1, #policies do
local cell, policy, units, has_recorded = cells[i], policies[i], 0, false
local algorithm = policy.algorithm
if algorithm.settle then
units, has_recorded = algorithm.settle(cell, policy, receipts[at + i], costs[at + i])
end
local amount, detail = algorithm.report(cell, policy)
reply[#reply + 1] = {
units > 0 and 1 or 0, exact(amount), detail, cell.incarnation, 0, units, has_recorded and 1 or 0,
}
end
end
local forget = operations.reset
function operations.reset(policies, costs, at, receipts)
for i = 1, #policies do policies[i].terms = receipts and receipts[at + i] end
forget(policies, costs, at, receipts)
end`

export const heldUnits = `local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' then return '' end
return (value:gsub('.', function(char) return string.format('%02x', char:byte()) end))`

export const members = `local caller_ms = ARGV[1]
local redis_call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
local lease_count, lease_window, lease_end, after_now = 0, nil, nil, nil
local now, server_micros, ttl_parts, ttl_margin = caller_ms, nil, 2, 10000
if not now or now == '' then
local time = redis_call('TIME')
server_micros, ttl_parts, ttl_margin = time[2] + 0, 4, 1000
now = time[1] * 1000 + (server_micros - server_micros % 1000) / 1000
else
now = now + 0
end
if ARGV[2] then
local id, text, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
if ttl == 0 then
redis.call('HDEL', KEYS[1], id)
else
redis.call('HSET', KEYS[1], id, string.format('%.0f', now + ttl) .. ' ' .. text)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
end
end
local found, members = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
local expires, text = string.match(found[i + 1], '^(%d+) (.*)$')
if expires and tonumber(expires) > now then
members[#members + 1], members[#members + 2] = found[i], text
else
redis.call('HDEL', KEYS[1], found[i])
end
end
return members`

export const writeDocument = `local revision = tonumber(redis.call('GET', KEYS[1]) or '0')
if revision ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], revision + 1)
redis.call('SET', KEYS[2], ARGV[2])
redis.call('LPUSH', KEYS[3], ARGV[3])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[4]) - 1)
return 1`

export const prelude = ({ algorithms, grants }: { readonly algorithms: string; readonly grants: string }): string => `local function define_general(reply)
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MAX_SAFE, is_server_clock = 9007199254740991, server_micros ~= nil
local define, defined, unreadable = {}, {}, 0
local function require_part(name)
defined[name] = defined[name] or define[name]()
return defined[name]
end
local function exact(amount)
return amount > 9007199254740900 and string.format('%.0f', amount) or amount
end
local function report_of(allowed, amount, detail)
local denied = not allowed
local report = amount * 134217728 + detail
if amount >= 67108863 or detail >= 134217728 then
report = { denied and 0 or 1, amount > 9007199254740900 and string.format('%.0f', amount) or amount, detail, 0 }
elseif denied then
report = -1 - report
end
return report
end
local function max_units(window) return min(floor(MAX_SAFE / window), 140737488355327) end
local function write_string(key, value, ttl)
redis_call('SET', key, value, 'PX', ttl + ttl_margin)
end
local MARK_VERSION, MARK_FORMAT, MARK_LENGTH = 9, '<BI4', 5
local next_incarnation = tonumber(call_text and call_text:match(';(%d+)$')) or ((now - now % 1000) * 1000 + server_micros) % 4294967296
local function new_incarnation()
next_incarnation = next_incarnation % 4294967295 + 1
return next_incarnation
end
local function leave_mark(cell, ttl)
if not cell.exists then return end
cell.incarnation = new_incarnation()
redis_call('SET', cell.key, pack(MARK_FORMAT, MARK_VERSION, cell.incarnation), 'PX', ttl + ttl_margin)
end
local function read_mark(value)
if #value ~= MARK_LENGTH or value:byte(1) ~= MARK_VERSION then return nil end
local _, incarnation = unpack_struct(MARK_FORMAT, value)
return incarnation
end
local function units_left(count, units, policy)
return count >= policy.most and count or max(0, count - units)
end
local function reject()
unreadable = unreadable + 1
return nil
end
local function read_string(cell, key, version, length, other_version)
cell.key, cell.incarnation, cell.exists, cell.repaired = key, 0, false, false
local value = redis.pcall('GET', key)
if not value then return nil end
cell.exists = true
if type(value) == 'string' then
local found = value:byte(1)
if #value == length and (found == version or found == other_version) then return value end
local incarnation = read_mark(value)
if incarnation then
cell.incarnation = incarnation
return nil
end
end
return reject()
end
${algorithms}
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
for i = 1, #policies do
local cell = cells[i]
if cell.repaired and cell == pool[i] then policies[i].algorithm.persist(cell, policies[i]) end
end
end
local function fits(cell, policy, cost)
return policy.limit > 0 and (cost == 0 or policy.algorithm.fits(cell, policy) >= cost)
end
local function leaves_trace(policy, cost) return cost > 0 and policy.limit > 0 end
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
local REFUSALS = {
'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOPERM', 'NOAUTH', 'LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'MOVED', 'ASK ',
'CROSSSLOT', 'read only', 'maxmemory', 'not allowed', "can't run", 'nknown',
}
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
${grants}
return decide_request, function() return unreadable end
end`

export const decide = ({ define }: { readonly define: string }): string => `local caller_ms, call_text = ARGV[2], ARGV[1]
if ARGV[4] then
local deadline_ms, clock = table.remove(ARGV) + 0, redis.call('TIME')
if not (clock[1] * 1000 + clock[2] / 1000 < deadline_ms) then
return redis.error_reply('LATE the deadline of this change has passed')
end
end
local redis_call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
local lease_count, lease_window, lease_end, after_now = 0, nil, nil, nil
local now, server_micros, ttl_parts, ttl_margin = caller_ms, nil, 2, 10000
if not now or now == '' then
local time = redis_call('TIME')
server_micros, ttl_parts, ttl_margin = time[2] + 0, 4, 1000
now = time[1] * 1000 + (server_micros - server_micros % 1000) / 1000
else
now = now + 0
end
${define}
local call = cjson.decode(ARGV[3])
local reply = { call_text, now }
local decide_request, unreadable_values = define_general(reply)
local function each_costs(number)
return setmetatable({}, { __index = function() return number end })
end
for _, policy in ipairs(call.policies) do policy.apart = call.apart end
local first_key, is_repeat = 0, false
if call.number then
local sender = KEYS[#KEYS]
is_repeat = call.number <= tonumber(redis_call('GET', sender) or 0)
if not is_repeat then redis_call('SET', sender, string.format('%.0f', call.number), 'PX', 3600000) end
end
for _, group in ipairs(call.groups) do
if is_repeat and group.op == 'refund' then group.op, group.costs = 'charge', each_costs(0) end
local policies, costs = {}, group.costs or each_costs(1)
for i, number in ipairs(group.policies) do policies[i] = call.policies[number] end
for number = 0, group.requests - 1 do
decide_request(group.op, policies, first_key, costs, number * #policies, group.receipts)
first_key = first_key + #policies
end
end
if unreadable_values() > 0 then reply[#reply + 1] = unreadable_values() end
return reply`

export const usualOne = ({ countsDenied, decide, hasGrants }: { readonly countsDenied: boolean; readonly decide: string; readonly hasGrants: boolean }): string => `if is_alone then
local amount, detail, denied, write, where, data, ttl, extra
cost = argv[7]
if cost then
units, is_charge = tonumber(cost), false
if not units then setting, units = cost, cost:find(':', 1, true) and 1 or 0
elseif units < 0 then units, is_charge = -units, true end
end
if units > 0 then repeat
if ${hasGrants} and redis_call('EXISTS', key .. '~') == 1 then break end
${decide}
until true end
if amount and not (denied and (${countsDenied} or is_charge)) then
if write == 'SET' then
redis_call('SET', key, data, 'PX', ttl + ttl_margin)
elseif write then
if write == 'ZADD' then redis_call(write, key, where, '#', extra, data)
elseif where then redis_call(write, key, where, data) else redis_call(write, key, data) end
if extra == true then redis_call('LPOP', key) end
if ttl then redis_call('PEXPIRE', key, ttl + ttl_margin) end
end
local report = amount * 134217728 + detail
if amount >= 67108863 or detail >= 134217728 then
report = { denied and 0 or 1, amount > 9007199254740900 and string.format('%.0f', amount) or amount, detail, 0 }
elseif denied then
report = -1 - report
end
return { report, now }
end
end`

export const usualCall = ({ countsDenied, define, hasGrants, lone, modules, policies, readsStrings, width }: { readonly countsDenied: boolean; readonly define: string; readonly hasGrants: boolean; readonly lone: string; readonly modules: readonly Module[]; readonly policies: string; readonly readsStrings: boolean; readonly width: number }): string => `local keys, argv = KEYS, ARGV
local key, call_text, caller_ms = keys[1], argv[3 * ${width} + 1], argv[3 * ${width} + 2]
local redis_call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
local lease_count, lease_window, lease_end, after_now = 0, nil, nil, nil
local now, server_micros, ttl_parts, ttl_margin = caller_ms, nil, 2, 10000
if not now or now == '' then
local time = redis_call('TIME')
server_micros, ttl_parts, ttl_margin = time[2] + 0, 4, 1000
now = time[1] * 1000 + (server_micros - server_micros % 1000) / 1000
else
now = now + 0
end
local key_count = ${hasGrants} and #keys / 2 or #keys
local is_alone, values, value_index, units, cost, is_charge = key_count == 1, nil, 1, 1, nil, false
${each(modules, (n, suffix, decide) => `local limit${suffix}, window${suffix}, setting${suffix} = argv[3 * ${n} - 2] + 0, argv[3 * ${n} - 1] + 0, argv[3 * ${n}]
setting${suffix} = setting${suffix} ~= '' and (tonumber(setting${suffix}) or setting${suffix}) or nil`)}
${lone}
local reply, repeats, values_before, values_end = { call_text or '', now }, argv[3 * ${width} + 3] == '1', 0, 0
local decide_request, unreadable_values, policies, costs
for request_start = 0, key_count - ${width}, ${width} do
local is_usual = false
if not is_alone then repeat
if ${readsStrings} and request_start >= values_end and not repeats then
values_before, values_end = request_start, request_start + (256 - 256 % ${width})
if values_end > key_count then values_end = key_count end
values = redis_call('MGET', unpack(keys, request_start + 1, values_end))
end
value_index = request_start - values_before
${each(modules, (n, suffix, decide) => `local key${suffix}, setting${suffix}, amount${suffix}, detail${suffix}, denied${suffix}, write${suffix}, where${suffix}, data${suffix}, ttl${suffix}, extra${suffix} = keys[request_start + ${n}], setting${suffix}
value_index, cost = value_index + 1, argv[3 * ${width} + 3 + request_start + ${n}]
if cost then
units, is_charge = tonumber(cost), false
if not units then setting${suffix}, units = cost, cost:find(':', 1, true) and 1 or 0
elseif units < 0 then units, is_charge = -units, true end
end
if units > 0 then repeat
if ${hasGrants} and redis_call('EXISTS', key${suffix} .. '~') == 1 then break end
${decide(suffix)}
until true end
if not amount${suffix} or denied${suffix} and (${width} > 1 or ${countsDenied} or is_charge) then break end`)}
is_usual = true
${each(modules, (n, suffix, decide) => `if write${suffix} == 'SET' then
redis_call('SET', key${suffix}, data${suffix}, 'PX', ttl${suffix} + ttl_margin)
elseif write${suffix} then
if write${suffix} == 'ZADD' then redis_call(write${suffix}, key${suffix}, where${suffix}, '#', extra${suffix}, data${suffix})
elseif where${suffix} then redis_call(write${suffix}, key${suffix}, where${suffix}, data${suffix}) else redis_call(write${suffix}, key${suffix}, data${suffix}) end
if extra${suffix} == true then redis_call('LPOP', key${suffix}) end
if ttl${suffix} then redis_call('PEXPIRE', key${suffix}, ttl${suffix} + ttl_margin) end
end
local report = amount${suffix} * 134217728 + detail${suffix}
if amount${suffix} >= 67108863 or detail${suffix} >= 134217728 then
report = { denied${suffix} and 0 or 1, amount${suffix} > 9007199254740900 and string.format('%.0f', amount${suffix}) or amount${suffix}, detail${suffix}, 0 }
elseif denied${suffix} then
report = -1 - report
end
reply[request_start + 2 + ${n}] = report`)}
until true end
if not is_usual then
if not decide_request then
${define}
decide_request, unreadable_values = define_general(reply)
policies, costs = { ${policies} }, {}
for i = 1, key_count do
local amount = (argv[3 * ${width} + 3 + i] or '1'):gsub('^%-', '')
costs[i] = tonumber(amount) or amount
end
end
local operation, sign, lease, lease_units = 'consume', (cost or ''):match('^([-+])(%d+):(%d+)$')
if sign then
operation = sign == '+' and 'renew' or 'release'
decide_request(operation, policies, request_start, { lease_units + 0 }, 0, { lease + 0, 0, 0 })
else
if is_charge then operation = 'charge' end
decide_request(operation, policies, request_start, costs, request_start)
end
end
end
local unreadable = unreadable_values and unreadable_values() or 0
if is_alone then return { reply[3], now, unreadable } end
if unreadable > 0 then reply[#reply + 1] = unreadable end
return reply`

export const algorithms = {
'concurrency': `define['concurrency'] = function()
local concurrency, TOTAL = {}, '#'
local function integer(number) return string.format('%.0f', number) end
local function lease_name(policy, number, units)
return integer(number) .. ':' .. integer(min(units, policy.limit))
end
local function late_leases(cell, policy)
return redis_call('ZRANGEBYSCORE', cell.key, '(' .. integer(now + policy.window), '+inf')
end
local function running_units(key, members, expired)
local used = -(tonumber(redis_call('ZSCORE', key, TOTAL)) or 0)
if used < 1 or used > MAX_SAFE or used % 1 ~= 0 then return nil end
for _, name in ipairs(expired) do used = used - (tonumber(name:match('^%d+:(%d+)$')) or MAX_SAFE) end
local running = members - 1 - #expired
if used < running or (used > 0) ~= (running > 0) then return nil end
return used
end
function concurrency.load(cell, key, policy)
cell.key, cell.incarnation, cell.exists, cell.repaired = key, 0, false, false
cell.used, cell.detail, cell.expired, cell.is_foreign = 0, 0, nil, false
local members = redis.pcall('ZCARD', key)
if members == 0 then return end
if type(members) == 'number' then
local expired = redis_call('ZRANGEBYSCORE', key, '1', integer(now))
local used = running_units(key, members, expired)
if used then
cell.used, cell.expired = used, expired
cell.repaired = #late_leases(cell, policy) > 0
return
end
end
reject()
cell.is_foreign = true
end
function concurrency.persist(cell, policy)
for _, name in ipairs(late_leases(cell, policy)) do
redis_call('ZADD', cell.key, 'XX', integer(now + policy.window), name)
end
end
local function write_total(cell, policy)
if cell.expired and #cell.expired > 0 then
redis_call('ZREMRANGEBYSCORE', cell.key, '1', integer(now))
cell.expired = nil
end
if cell.used <= 0 then return redis_call('DEL', cell.key) end
redis_call('ZADD', cell.key, integer(-cell.used), TOTAL)
redis_call('PEXPIRE', cell.key, policy.window + ttl_margin)
end
function concurrency.fits(cell, policy) return policy.limit - cell.used end
function concurrency.take(cell, policy, units)
if cell.is_foreign then
redis_call('DEL', cell.key)
cell.is_foreign = false
end
local number
repeat
lease_count = lease_count + 1
local lease_detail = server_micros and server_micros % 1000 + lease_count or (call_text:match('%d+$') + lease_count) % 67108864
local lease_number = now % 4398046511104 * 1000 + lease_detail
number, cell.detail = lease_number, lease_detail
if cell.used + min(units, policy.limit) > MAX_SAFE then return end
until not redis_call('ZSCORE', cell.key, lease_name(policy, number, units))
redis_call('ZADD', cell.key, integer(now + policy.window), lease_name(policy, number, units))
cell.used = cell.used + min(units, policy.limit)
write_total(cell, policy)
end
function concurrency.give_back(cell, policy, units, number)
local name = lease_name(policy, number, units)
local ends_at = not cell.is_foreign and redis_call('ZSCORE', cell.key, name)
if not ends_at then return end
redis_call('ZREM', cell.key, name)
if tonumber(ends_at) > now then cell.used = cell.used - min(units, policy.limit) end
write_total(cell, policy)
end
function concurrency.renew(cell, policy, units, number)
local name = lease_name(policy, number, units)
local ends_at = not cell.is_foreign and redis_call('ZSCORE', cell.key, name)
if not ends_at or tonumber(ends_at) <= now then return false end
redis_call('ZADD', cell.key, integer(now + policy.window), name)
redis_call('PEXPIRE', cell.key, policy.window + ttl_margin)
return true
end
function concurrency.clear(cell)
redis_call('DEL', cell.key)
cell.used, cell.expired = 0, nil
end
function concurrency.report(cell) return cell.used, cell.detail end
return concurrency
end`,
'fixed-window': `define['fixed-window'] = function()
local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7', 18
local fixed_window = {}
local function bounds_at(policy, time)
local before, after
for bound in policy.setting:gmatch('%d+') do
bound = tonumber(bound)
if bound <= time then before = bound else after = after or bound end
end
return before, after
end
local function start_of(policy)
if type(policy.setting) ~= 'string' then return policy.setting == 1 and now - now % policy.window or now end
local start, finish = bounds_at(policy, now)
if start and finish then return start end
error('its clock and that of the process differ by more than a window', 0)
end
local function end_of(policy, start)
if type(policy.setting) ~= 'string' then return start + policy.window end
local before, after = bounds_at(policy, start)
return after or before + policy.window
end
function fixed_window.load(cell, key, policy)
policy.most = max_units(type(policy.setting) == 'string' and 1 or policy.window)
policy.start = start_of(policy)
cell.start, cell.count = nil, 0
local value = read_string(cell, key, VERSION, LENGTH)
if not value then return end
local _, incarnation, start, count = unpack_struct(FORMAT, value)
if count > policy.most then return reject() end
local latest = policy.setting and end_of(policy, policy.start) or now
if start > latest then start, cell.repaired = latest, true end
if now < end_of(policy, start) then
cell.incarnation, cell.start, cell.count = incarnation, start, count
end
end
function fixed_window.persist(cell, policy)
local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.count)
write_string(cell.key, value, end_of(policy, cell.start) - now)
end
local function write_count(cell)
redis_call('SETRANGE', cell.key, '11', pack('<I7', cell.count))
end
function fixed_window.fits(cell, policy) return policy.limit - cell.count end
function fixed_window.take(cell, policy, units)
cell.count = min(cell.count + units, policy.most)
if cell.start then return write_count(cell) end
cell.start = policy.start
fixed_window.persist(cell, policy)
end
function fixed_window.give_back(cell, policy, units, at)
if cell.start ~= at then return end
cell.count = units_left(cell.count, units, policy)
write_count(cell)
end
function fixed_window.clear(cell, policy)
leave_mark(cell, end_of(policy, now) - now)
cell.start, cell.count = nil, 0
end
function fixed_window.report(cell)
if not cell.start then return cell.count, 0, 0 end
local time = max(cell.start, now)
return cell.count, time - cell.start + 1, time - now
end
return fixed_window
end`,
'granted-log': `define['granted-log'] = function()
local log, held_log = require_part('sliding-log'), {}
local function read_grants(cell, policy)
cell.grants, cell.held = {}, 0
local value = redis.pcall('GET', cell.grants_key)
cell.is_apart = policy.apart ~= nil and type(value) ~= 'string'
if cell.is_apart then value = policy.apart:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end) end
if not value or value == '' then return end
if type(value) ~= 'string' or value:byte(1) ~= 1 or (#value - 1) % 19 ~= 0 then return reject() end
local grants = { unpack_struct('<' .. ('I6I6I7'):rep((#value - 1) / 19), value, 2) }
grants[#grants] = nil
local last_end, size = now + floor(policy.window / 10), 0
for i = 1, #grants, 3 do
local ends_at, units, id = grants[i], grants[i + 1], grants[i + 2]
if not cell.is_apart or ends_at + policy.window + policy.resolution > now then
cell.grants[size + 1], cell.grants[size + 2], cell.grants[size + 3] = min(ends_at, last_end), units, id
size, cell.held = size + 3, cell.held + units
end
end
end
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
local function altered(policy, fields) return setmetatable(fields, { __index = policy }) end
local function record(cell, policy, units)
log.take(cell, altered(policy, { limit = max(policy.limit, cell.used + units) }), units)
end
local function record_ended(cell, key, policy)
local grants, resolution, last = cell.grants, policy.resolution, 0
if cell.is_apart or not grants[1] or grants[1] > now then return end
if cell.repaired then log.persist(cell, policy) end
if cell.used > 0 then last = cell.layout.time_of(cell, policy, cell.used) end
repeat
local ends_at, units = grants[1], grants[2]
last = min(max(last, ends_at), now)
local past = altered(policy, { stamp = ceil(last / resolution) * resolution })
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
end`,
'leaky-bucket': `define['leaky-bucket'] = function()
local leaky_bucket = {}
for name, part in pairs(require_part('token-bucket')) do leaky_bucket[name] = part end
function leaky_bucket.delay(cell, policy)
if cell.level == 0 then return 0 end
return min(ceil(cell.level / policy.limit), cell.ends_at - cell.at)
end
return leaky_bucket
end`,
'penalty': `define['penalty'] = function()
local VERSION, FORMAT, LENGTH = 1, '<BI6I4I6I6I6', 29
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
local function forgotten_at(cell, policy)
return cell.blocked_until + (cell.last > 0 and max(policy.window, cell.last) or 0)
end
function penalty.persist(cell, policy)
local strikes_end_at = cell.strikes > 0 and cell.since + policy.window or 0
local ttl = max(0, max(strikes_end_at, forgotten_at(cell, policy)) - now)
local value = pack(FORMAT, VERSION, cell.since, cell.strikes, cell.blocked_until, cell.asked, cell.last)
write_string(cell.key, value, ttl)
end
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
function penalty.report(cell, policy)
if now < cell.blocked_until then return 0, cell.blocked_until - now end
return is_open(cell, policy) and cell.strikes or 0, 0
end
return penalty
end`,
'sliding-counter': `define['sliding-counter'] = function()
local VERSION, FORMAT, LENGTH = 1, '<BI4I6I7I7', 25
local sliding_counter = {}
function sliding_counter.load(cell, key, policy)
policy.most = max_units(policy.window)
local this = now - now % policy.window
cell.start, cell.current, cell.previous, cell.is_current = this, 0, 0, false
local value = read_string(cell, key, VERSION, LENGTH)
if not value then return end
local _, incarnation, start, current, previous = unpack_struct(FORMAT, value)
if current > policy.most or previous > policy.most then return reject() end
local latest = this + policy.window
if start > latest then start, cell.repaired = latest, true end
if start >= this then
cell.incarnation, cell.current, cell.previous = incarnation, current, previous
cell.start, cell.is_current = start, true
elseif start + policy.window == this then
cell.incarnation, cell.previous = incarnation, current
end
end
function sliding_counter.persist(cell, policy)
local value = pack(FORMAT, VERSION, cell.incarnation, cell.start, cell.current, cell.previous)
write_string(cell.key, value, cell.start + 2 * policy.window - now)
cell.is_current = true
end
local function write_current(cell)
redis_call('SETRANGE', cell.key, '11', pack('<I7', cell.current))
end
function sliding_counter.fits(cell, policy)
local left = policy.window - max(0, now - cell.start)
return policy.limit - cell.current - floor(cell.previous * left / policy.window)
end
function sliding_counter.take(cell, policy, units)
cell.current = min(cell.current + units, policy.most)
if cell.is_current then return write_current(cell) end
sliding_counter.persist(cell, policy)
end
function sliding_counter.give_back(cell, policy, units, at)
if not cell.is_current or cell.start ~= at then return end
cell.current = units_left(cell.current, units, policy)
write_current(cell)
end
function sliding_counter.clear(cell, policy)
leave_mark(cell, 2 * policy.window)
cell.is_current, cell.current, cell.previous = false, 0, 0
end
function sliding_counter.report(cell)
return cell.current, cell.previous, max(0, cell.start - now)
end
return sliding_counter
end`,
'sliding-log-blocks': `define['block-log'] = function()
local block_log = {}
local TIME_SPAN = 1099511627776
local LATEST = now + TIME_SPAN / 2
local function form(version)
local header, entry, both, size, full_size, span = '<BI4I3', '<I5I3', '<I3I5I3', 8, 112, 16777216
if version == 2 then
header, entry, both, size, full_size, span = '<BI4I6', '<I5I6', '<I6I5I6', 11, 121, 281474976710656
end
return { version = version, header = header, entry = entry, both = both, size = size, full_size = full_size, span = span }
end
local FORMS = { form(1), form(2) }
local function entries_in(form, block) return #block / form.size - 1 end
local function form_of(block)
local form = FORMS[block:byte()]
local entries = form and entries_in(form, block) or 0
return entries >= 1 and entries % 1 == 0 and form
end
local function entry_in(form, block, i)
local before, time, total = unpack_struct(form.both, block, 6 + i * form.size)
return LATEST - (LATEST - time) % TIME_SPAN, total, before
end
local function last_of(form, block) return entry_in(form, block, #block / form.size - 2) end
local function entry(form, time, total)
return pack(form.entry, time % TIME_SPAN, total % form.span)
end
local function header(cell, before)
return pack(cell.form.header, cell.form.version, cell.incarnation, before % cell.form.span)
end
local function count_of(cell)
cell.count = cell.count or redis_call('LLEN', cell.key)
return cell.count
end
local function block_at(cell, index)
if index == 0 then return cell.head_block end
if index == count_of(cell) - 1 then return cell.tail_block end
local block = redis_call('LINDEX', cell.key, index)
if block and form_of(block) == cell.form then return block end
if not cell.is_broken then reject() end
cell.is_broken = true
return cell.tail_block
end
local function is_after(_cell, wanted, time) return time > wanted end
local function reaches(cell, wanted, _time, total)
return (total - cell.base) % cell.form.span >= wanted
end
local function search(cell, found, wanted)
local form, low, high, step = cell.form, cell.block, cell.block, 1
while not found(cell, wanted, last_of(form, block_at(cell, high))) and high < count_of(cell) - 1 do
low, high, step = high + 1, min(high + step, cell.count - 1), step * 2
end
while low < high do
local middle = floor((low + high) / 2)
if found(cell, wanted, last_of(form, block_at(cell, middle))) then high = middle else low = middle + 1 end
end
local block = block_at(cell, low)
local from, to = low == cell.block and cell.entry or 0, entries_in(form, block) - 1
while from < to do
local middle = floor((from + to) / 2)
if found(cell, wanted, entry_in(form, block, middle)) then to = middle else from = middle + 1 end
end
return low, from, block
end
function block_log.time_of(cell, policy, k)
local _, i, block = search(cell, reaches, k)
return min((entry_in(cell.form, block, i)), policy.stamp)
end
local function measure(cell, policy, head, tail)
cell.head_block, cell.tail_block = head, tail
cell.count = head == tail and 1 or nil
cell.last_time, cell.last_total = last_of(cell.form, tail)
cell.used, cell.block, cell.entry = 0, 0, 0
if cell.last_time <= policy.dead_until then return end
local index, i, block = search(cell, is_after, policy.dead_until)
local time, total, before = entry_in(cell.form, block, i)
cell.block, cell.entry, cell.base = index, i, before
cell.used = cell.is_broken and 0 or (cell.last_total - before) % cell.form.span
if cell.used == 0 then return end
if total == before then time = block_log.time_of(cell, policy, 1) end
cell.first = min(time, policy.stamp)
end
function block_log.read(cell, policy, tail)
local head = redis_call('LINDEX', cell.key, '0')
local form = form_of(tail)
if not form or form_of(head) ~= form then return false end
cell.form, cell.is_broken = form, false
local _, incarnation = unpack_struct(form.header, tail)
cell.incarnation = incarnation
measure(cell, policy, head, tail)
cell.repaired = cell.used > 0 and cell.last_time > policy.stamp
return true
end
local function push(cell, policy, block, entries)
for i = 1, #entries, 2 do
if #block >= cell.form.full_size then
redis_call('RPUSH', cell.key, block)
block = header(cell, entries[i - 1])
end
block = block .. entry(cell.form, entries[i], entries[i + 1])
end
redis_call('RPUSH', cell.key, block)
redis_call('PEXPIRE', cell.key, policy.ttl)
measure(cell, policy, redis_call('LINDEX', cell.key, '0'), block)
end
function block_log.write_anew(cell, policy, entries, most)
if cell.exists then redis_call('DEL', cell.key) end
cell.exists, cell.is_broken, cell.form = true, false, FORMS[most < FORMS[1].span and 1 or 2]
push(cell, policy, header(cell, 0), entries)
end
local function replace(cell, policy, index, i, entries)
local block = block_at(cell, index)
if index > 0 and not cell.is_broken then
redis_call('LTRIM', cell.key, '0', index - 1)
else
redis_call('DEL', cell.key)
end
if cell.is_broken then
cell.used, cell.exists = 0, false
else
push(cell, policy, block:sub(1, (i + 1) * cell.form.size), entries)
end
end
local function entries_from(cell, index, i, less)
local form, entries = cell.form, {}
for number = index, count_of(cell) - 1 do
local block = block_at(cell, number)
for place = number == index and i or 0, entries_in(form, block) - 1 do
local time, total = entry_in(form, block, place)
entries[#entries + 1], entries[#entries + 2] = time, (total - less) % form.span
end
end
return entries
end
local function drop(cell, policy, k)
local form = cell.form
if k > 0 then cell.block, cell.entry = search(cell, reaches, k + 1) end
if cell.is_broken then return end
if cell.block > 0 then
redis_call('LTRIM', cell.key, cell.block, '-1')
cell.head_block = redis_call('LINDEX', cell.key, '0')
cell.count, cell.block = nil, 0
end
if k <= 0 then return end
local is_tail = cell.head_block == cell.tail_block
cell.base, cell.used = (cell.base + k) % form.span, cell.used - k
cell.head_block = header(cell, cell.base) .. cell.head_block:sub((cell.entry + 1) * form.size + 1)
redis_call('LSET', cell.key, '0', cell.head_block)
if is_tail then cell.tail_block = cell.head_block end
cell.entry, cell.first = 0, min((entry_in(form, cell.head_block, 0)), policy.stamp)
end
function block_log.take(cell, policy, units, most)
local stamp, is_kept = policy.stamp, cell.used > 0 and cell.used + units - most < cell.used
if is_kept and most >= cell.form.span then
block_log.write_anew(cell, policy, entries_from(cell, cell.block, cell.entry, cell.base), most)
end
if is_kept then drop(cell, policy, cell.used + units - most) end
if not is_kept or cell.is_broken then return block_log.write_anew(cell, policy, { stamp, units }, most) end
local form, tail, total = cell.form, cell.tail_block, cell.last_total + units
local is_head, is_ttl_due = cell.head_block == tail, cell.last_time < policy.share_start
if stamp ~= cell.last_time and #tail >= form.full_size then
cell.tail_block = header(cell, cell.last_total) .. entry(form, stamp, total)
cell.count = redis_call('RPUSH', cell.key, cell.tail_block)
else
if stamp == cell.last_time then tail = tail:sub(1, -form.size - 1) end
cell.tail_block = tail .. entry(form, stamp, total)
redis_call('LSET', cell.key, '-1', cell.tail_block)
if is_head then cell.head_block = cell.tail_block end
end
cell.last_time, cell.last_total, cell.used = stamp, total % form.span, cell.used + units
if is_ttl_due then redis_call('PEXPIRE', cell.key, policy.ttl) end
end
function block_log.persist(cell, policy)
cell.block, cell.entry = 0, 0
local index, i = search(cell, is_after, policy.stamp - 1)
replace(cell, policy, index, i, { policy.stamp, cell.last_total })
end
function block_log.give_back(cell, policy, units, at)
if cell.last_time < at then return end
local index, i, block = search(cell, is_after, at - 1)
local time, total, before = entry_in(cell.form, block, i)
if index == cell.block and i == cell.entry then before = cell.base end
local given = min(units, (total - before) % cell.form.span)
if time == at and given > 0 then replace(cell, policy, index, i, entries_from(cell, index, i, given)) end
end
return block_log
end`,
'sliding-log-packed': `define['layouts'] = function()
local layouts = {}
local function layout_of(is_list) return require_part(is_list and 'block-log' or 'short-log') end
function layouts.grow(cell, policy, units, most)
local entries = cell.layout.entries(cell, policy)
cell.layout = layout_of(true)
if cell.used > 0 then cell.layout.write_anew(cell, policy, entries, most) end
cell.layout.take(cell, policy, units, most)
end
function layouts.read(cell, key, policy)
local is_list = not policy.is_short
local value = is_list and redis.pcall('LINDEX', key, '-1') or redis.pcall('GET', key)
local layout = layout_of(is_list)
cell.layout = layout
if type(value) == 'table' then
value = is_list and redis.pcall('GET', key) or redis.pcall('LINDEX', key, '-1')
layout = layout_of(not is_list)
end
if not value then
cell.exists = false
elseif type(value) ~= 'string' or not layout.read(cell, policy, value) then
reject()
elseif cell.used > 0 then
cell.layout = layout
end
end
return layouts
end`,
'sliding-log-sorted-set': `define['layouts'] = function()
local UNITS_PER_ZADD, layouts, set_log = 1000, {}, {}
local function newest(key)
local found = redis_call('ZRANGE', key, -1, -1, 'WITHSCORES')
local incarnation, number = (found[1] or ''):match('^(%d+):%-?%d+:(%d+)$')
incarnation, number = tonumber(incarnation), tonumber(number)
if not incarnation or incarnation > 4294967295 or number > MAX_SAFE then return nil end
return incarnation, tonumber(found[2]), number
end
local function score(time) return string.format('%.0f', time) end
local function after(time) return '(' .. score(time) end
local function add(cell, policy, units)
local _, newest_time, newest_number = newest(cell.key)
local number = newest_time == policy.stamp and newest_number + 1 or 0
local done = 0
while done < units do
local members = {}
for i = done, min(units, done + UNITS_PER_ZADD) - 1 do
members[#members + 1] = policy.stamp
members[#members + 1] = string.format('%010d:%.0f:%016.0f', cell.incarnation, policy.stamp, number + i)
end
redis_call('ZADD', cell.key, unpack(members))
done = done + UNITS_PER_ZADD
end
redis_call('PEXPIRE', cell.key, policy.ttl)
end
function set_log.time_of(cell, policy, k)
local rank = k - 1 - cell.used
local found = redis_call('ZRANGE', cell.key, rank, rank, 'WITHSCORES')
return min(tonumber(found[2]), policy.stamp)
end
local function measure(cell, policy)
cell.used = redis_call('ZCOUNT', cell.key, after(policy.dead_until), '+inf')
if cell.used > 0 then cell.first = set_log.time_of(cell, policy, 1) end
end
function layouts.read(cell, key, policy)
cell.layout = set_log
local count, incarnation, time = redis.pcall('ZCARD', key), nil, nil
if count == 0 then
cell.exists = false
return
end
local value = type(count) == 'table' and redis.pcall('GET', key)
if not value then
incarnation, time = newest(key)
elseif type(value) == 'string' then
incarnation = read_mark(value)
end
if not incarnation then return reject() end
cell.incarnation = incarnation
if time then measure(cell, policy) end
cell.repaired = cell.used > 0 and time > policy.stamp
end
function set_log.persist(cell, policy)
local ahead = redis_call('ZCOUNT', cell.key, after(policy.stamp), '+inf')
redis_call('ZREMRANGEBYSCORE', cell.key, after(policy.stamp), '+inf')
add(cell, policy, ahead)
end
function set_log.take(cell, policy, units, most)
if cell.used == 0 and cell.exists then redis_call('DEL', cell.key) end
cell.exists = true
redis_call('ZREMRANGEBYSCORE', cell.key, '-inf', score(policy.dead_until))
add(cell, policy, units)
redis_call('ZREMRANGEBYRANK', cell.key, 0, -most - 1)
measure(cell, policy)
end
function set_log.give_back(cell, policy, units, at)
local taken = redis_call('ZCOUNT', cell.key, score(at), score(at))
local given = min(units, taken)
if given == 0 then return end
local first = redis_call('ZCOUNT', cell.key, '-inf', score(at)) - given
redis_call('ZREMRANGEBYRANK', cell.key, first, first + given - 1)
measure(cell, policy)
end
return layouts
end`,
'sliding-log-string': `define['short-log'] = function()
local VERSION, HEADER, HEADER_SIZE = 3, '<BI4I6', 11
local MAX_RECORDED, MAX_UNITS = 257, 512
local SHORT_WINDOW = 4194304
local short_log = {}
local SHORT = { entry = '<I3B', size = 4, max_offset = 16777215 }
local LONG = { entry = '<I4B', size = 5, max_offset = 4294967295 }
local function form_of(policy) return policy.window <= SHORT_WINDOW and SHORT or LONG end
local function time_at(cell, policy, i)
local form = cell.form
return min(cell.base + unpack_struct(form.entry, cell.value, HEADER_SIZE + 1 + i * form.size), policy.stamp)
end
local function part(cell, from, to)
local size = cell.form.size
return cell.value:sub(HEADER_SIZE + 1 + from * size, HEADER_SIZE + to * size)
end
local function rebase(cell, policy, base, from)
local parts = {}
for i = from, cell.count - 1 do
parts[#parts + 1] = pack(cell.form.entry, time_at(cell, policy, i) - base, 0)
end
cell.base = base
return table.concat(parts)
end
local function first_after(cell, policy, time)
local low, high = 0, time_at(cell, policy, 0) > time and 0 or cell.count
while low < high do
local middle = floor((low + high) / 2)
if time_at(cell, policy, middle) > time then high = middle else low = middle + 1 end
end
return low
end
local function measure(cell, policy)
cell.head = first_after(cell, policy, policy.dead_until)
cell.used, cell.first = cell.count - cell.head, nil
if cell.used > 0 then cell.first = time_at(cell, policy, cell.head) end
end
local function write(cell, policy, units)
cell.value, cell.count = pack(HEADER, VERSION, cell.incarnation, cell.base) .. units, #units / cell.form.size
redis_call('SET', cell.key, cell.value, 'PX', policy.ttl)
measure(cell, policy)
end
function short_log.read(cell, policy, value)
local form = form_of(policy)
local count = (#value - HEADER_SIZE) / form.size
if count < 1 or count > MAX_UNITS or count % 1 ~= 0 then
cell.incarnation = read_mark(value) or 0
return cell.incarnation > 0
end
local version, incarnation, base = unpack_struct(HEADER, value)
if version ~= VERSION then return false end
cell.form, cell.value, cell.incarnation, cell.base, cell.count = form, value, incarnation, base, count
cell.repaired = base + unpack_struct(form.entry, value, #value - form.size + 1) > policy.stamp
measure(cell, policy)
return true
end
function short_log.persist(cell, policy)
write(cell, policy, rebase(cell, policy, min(cell.base, policy.stamp), 0))
end
function short_log.take(cell, policy, units, most)
local form, stamp, kept = form_of(policy), policy.stamp, ''
if cell.used > 0 and not policy.is_short or min(cell.used + units, most) > MAX_RECORDED then
return require_part('layouts').grow(cell, policy, units, most)
end
if cell.used > 0 then
local from = cell.head + max(0, cell.used + units - most)
if stamp - cell.base > form.max_offset then
kept = rebase(cell, policy, cell.first, from)
else
kept = part(cell, from, cell.count)
end
else
cell.form, cell.base, cell.exists = form, stamp, true
end
write(cell, policy, kept .. pack(form.entry, stamp - cell.base, 0):rep(units))
end
function short_log.give_back(cell, policy, units, at)
local from = first_after(cell, policy, at - 1)
local to = min(first_after(cell, policy, at), from + units)
if to == from then return end
if to - from == cell.used then cell.used = 0
else write(cell, policy, part(cell, cell.head, from) .. part(cell, to, cell.count)) end
end
function short_log.time_of(cell, policy, k) return time_at(cell, policy, cell.head + k - 1) end
function short_log.entries(cell, policy)
local entries = {}
for i = 1, cell.used do
local time, size = short_log.time_of(cell, policy, i), #entries
if entries[size - 1] ~= time then size = size + 2 end
entries[size - 1], entries[size] = time, i
end
return entries
end
return short_log
end`,
'sliding-log': `define['sliding-log'] = function()
local layouts, sliding_log = require_part('layouts'), {}
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
local function max_recorded(policy) return 2 * policy.limit + 1 end
function sliding_log.take(cell, policy, units)
local most = max(max_recorded(policy), cell.used)
cell.layout.take(cell, policy, min(units, most), most)
end
local function ms_until(policy, time)
return min(max(time, policy.dead_until + 1), policy.stamp) + policy.window - now
end
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
if cell.used == 0 then sliding_log.clear(cell, policy) end
end
function sliding_log.clear(cell, policy)
leave_mark(cell, policy.resolution + policy.window)
cell.used, cell.first = 0, nil
end
function sliding_log.report(cell, policy)
local used, limit = cell.used, policy.limit
if used == 0 or limit == 0 then return used, 0 end
if used <= limit then return used, ms_until(policy, cell.first) end
return used, ms_until_gone(cell, policy, used - limit + 1)
end
return sliding_log
end`,
'token-bucket': `define['token-bucket'] = function()
local PLAIN, SHIFTED, FORMAT, LENGTH = 1, 2, '<BI4I6I7I7I7', 32
local bucket = {}
function bucket.load(cell, key, policy)
policy.capacity = policy.setting or policy.limit * policy.window
cell.at, cell.level, cell.ends_at, cell.lives_until, cell.version = now, 0, 0, 0, PLAIN
local value = read_string(cell, key, PLAIN, LENGTH, SHIFTED)
if not value then return end
local version, incarnation, at, level, ends_at, lives_until = unpack_struct(FORMAT, value)
local is_drained_in_time = at < ends_at and ends_at - at <= level and ends_at <= lives_until
if not is_drained_in_time or level > MAX_SAFE or lives_until > MAX_SAFE then return reject() end
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
if is_server_clock then ttl = ttl + ceil(ttl / 4) end
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
cell.incarnation = new_incarnation()
bucket.persist(cell, policy)
cell.incarnation = new_incarnation()
elseif not is_earlier and ends_at <= cell.lives_until and is_server_clock then
redis_call('SETRANGE', cell.key, '5', pack('<I6I7I7', cell.at, cell.level, ends_at))
else
bucket.persist(cell, policy)
end
end
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
local longest = policy.limit > 0 and ceil(policy.capacity / policy.limit) or policy.window
leave_mark(cell, max(longest, cell.lives_until - now))
cell.at, cell.level, cell.ends_at, cell.lives_until, cell.version = now, 0, 0, 0, PLAIN
end
function bucket.report(cell)
return cell.level, cell.level > 0 and cell.ends_at - now or 0, cell.at - now
end
return bucket
end`,
}

export const stringModules: ReadonlySet<string> = new Set(['fixed-window','penalty','sliding-counter','sliding-log-string','token-bucket'])

export const usual = {
'concurrency': (s: string): string => `if lease_window ~= window${s} then
lease_window = window${s}
local ends_at = now + window${s}
lease_end = string.format('%d%06d', (ends_at - ends_at % 1000000) / 1000000, ends_at % 1000000)
after_now = string.format('(%d%06d', (now - now % 1000000) / 1000000, now % 1000000)
end
local held, total = 0, redis.pcall('ZSCORE', key${s}, '#')
if total then
if type(total) ~= 'string' then break end
held = -total
local running = redis_call('ZCOUNT', key${s}, after_now, lease_end)
if running < 1 or held < running or held > 9007199254740991 or held % 1 ~= 0 then break end
if held > running and redis_call('ZCARD', key${s}) ~= running + 1 then break end
elseif redis_call('EXISTS', key${s}) == 1 then
break
end
detail${s} = 0
if type(setting${s}) ~= 'string' then
amount${s}, denied${s} = held, held + units > limit${s}
if not denied${s} then
lease_count = lease_count + 1
local lease_detail = server_micros and server_micros % 1000 + lease_count or (call_text:match('%d+$') + lease_count) % 67108864
local lease_number = now % 4398046511104 * 1000 + lease_detail
amount${s}, detail${s} = held + units, lease_detail
write${s}, where${s}, ttl${s} = 'ZADD', string.format(amount${s} < 2147483648 and '-%d' or '-%.0f', amount${s}), window${s}
extra${s} = lease_end
if lease_number < 100000000 or units > 2147483647 then
data${s} = string.format('%.0f:%.0f', lease_number, units)
else
local low = lease_number % 100000000
data${s} = string.format('%d%08d:%d', (lease_number - low) / 100000000, low, units)
end
end
break
end
local lease = setting${s}:sub(2)
if setting${s}:byte() == 43 then
denied${s} = not redis_call('ZSCORE', key${s}, lease)
if not denied${s} then
redis_call('ZADD', key${s}, lease_end, lease)
redis_call('PEXPIRE', key${s}, window${s} + ttl_margin)
end
else
denied${s} = redis_call('ZREM', key${s}, lease) == 0
if not denied${s} then
held = held - lease:match(':(%d+)$')
if held > 0 then redis_call('ZADD', key${s}, string.format(held < 2147483648 and '-%d' or '-%.0f', held), '#') else redis_call('DEL', key${s}) end
end
end
amount${s} = held`,
'fixed-window': (s: string): string => `local value = values and values[value_index]
if not value then
value = redis.pcall('GET', key${s})
if value and type(value) ~= 'string' then break end
end
if value then
if #value ~= 18 then break end
local version, incarnation, start, count = unpack_struct('<BI4I6I7', value)
if version ~= 1 or incarnation > 0 or start > now or count > limit${s} then break end
if now < start + window${s} then
amount${s}, detail${s} = count, now - start + 1
denied${s} = count + units > limit${s}
if not denied${s} then
amount${s} = count + units
write${s}, where${s}, data${s} = 'SETRANGE', '11', pack('<I7', amount${s})
end
break
end
end
if units > limit${s} then break end
local begin = setting${s} == 1 and now - now % window${s} or now
amount${s}, detail${s} = units, now - begin + 1
write${s}, data${s}, ttl${s} = 'SET', pack('<BI4I6I7', 1, 0, begin, units), begin + window${s} - now`,
'penalty': (s: string): string => `local value = values and values[value_index]
if not value then
value = redis.pcall('GET', key${s})
if value and type(value) ~= 'string' then break end
end
if value then
if #value ~= 29 then break end
local version, since, strikes, blocked_until, asked, last = unpack_struct('<BI6I4I6I6I6', value)
if version ~= 1 or now < blocked_until or since > now then break end
if asked > 315360000000 or last > 315360000000 or (blocked_until == 0) ~= (asked == 0) or strikes + asked == 0 then break end
amount${s}, detail${s} = now < since + window${s} and strikes or 0, 0
else
amount${s}, detail${s} = 0, 0
end`,
'sliding-counter': (s: string): string => `local value = values and values[value_index]
if not value then
value = redis.pcall('GET', key${s})
if value and type(value) ~= 'string' then break end
end
local this, before = now - now % window${s}, 0
local left = this + window${s} - now
if value then
if #value ~= 25 then break end
local version, incarnation, start, current, previous = unpack_struct('<BI4I6I7I7', value)
if version ~= 1 or incarnation > 0 or start > this or current > limit${s} or previous > 9007199254740991 / window${s} then break end
if start == this then
amount${s}, detail${s} = current, previous
denied${s} = current + units + math.floor(previous * left / window${s}) > limit${s}
if not denied${s} then
amount${s} = current + units
write${s}, where${s}, data${s} = 'SETRANGE', '11', pack('<I7', amount${s})
end
break
end
if start + window${s} == this then before = current end
end
if units + math.floor(before * left / window${s}) > limit${s} then break end
amount${s}, detail${s} = units, before
write${s}, data${s}, ttl${s} = 'SET', pack('<BI4I6I7I7', 1, 0, this, units, before), left + window${s}`,
'sliding-log-blocks': (s: string): string => `local TIME_SPAN, HALF_SPAN = 1099511627776, 549755813888
local tail = redis.pcall('LINDEX', key${s}, '-1')
if type(tail) ~= 'string' then break end
local dead_until, resolution = now - window${s}, setting${s} or 1
local stamp = now + -now % resolution
local version, length = tail:byte(1), #tail
local header, entry, both, size, full_size, span = '<BI4I3', '<I5I3', '<I3I5I3', 8, 112, 16777216
if version == 2 then
header, entry, both, size, full_size, span = '<BI4I6', '<I5I6', '<I6I5I6', 11, 121, 281474976710656
end
if (version ~= 1 and version ~= 2) or length <= size or length % size ~= 0 or limit${s} >= span / 2 then break end
local _, incarnation = unpack_struct(header, tail)
local last, last_total = unpack_struct(entry, tail, length - size + 1)
local last_age = (stamp - last) % TIME_SPAN
if incarnation > 0 or last_age >= stamp - dead_until then break end
local head = redis_call('LINDEX', key${s}, '0')
if #head <= size or #head % size ~= 0 or head:byte(1) ~= version then break end
if (unpack_struct(entry, head, #head - size + 1) - dead_until - 1) % TIME_SPAN >= HALF_SPAN then
head, extra${s} = redis_call('LINDEX', key${s}, '1'), true
if not head or #head <= size or #head % size ~= 0 or head:byte(1) ~= version then break end
if (unpack_struct(entry, head, #head - size + 1) - dead_until - 1) % TIME_SPAN >= HALF_SPAN then break end
end
local low, high = 0, #head / size - 2
while low < high do
local middle = (low + high - (low + high) % 2) / 2
local time = unpack_struct(entry, head, 1 + (middle + 1) * size)
if (time - dead_until - 1) % TIME_SPAN >= HALF_SPAN then low = middle + 1 else high = middle end
end
local base, first, total = unpack_struct(both, head, 6 + low * size)
local used = (last_total - base) % span + units
if total == base then break end
first = (first - dead_until) % TIME_SPAN + dead_until
detail${s} = (first > stamp and stamp or first) + window${s} - now
if used > limit${s} then
if used == limit${s} + 1 then amount${s}, denied${s} = used - units, true end
break
end
amount${s}, write${s} = used, 'LSET'
data${s} = pack(entry, stamp % TIME_SPAN, (last_total + units) % span)
if last_age == 0 then where${s}, data${s} = '-1', tail:sub(1, length - size) .. data${s}
elseif length < full_size then where${s}, data${s} = '-1', tail .. data${s}
else write${s}, data${s} = 'RPUSH', pack(header, version, 0, last_total) .. data${s} end
if (stamp - last_age) * 4 < stamp * 4 - stamp * 4 % window${s} then ttl${s} = window${s} + math.ceil(window${s} / ttl_parts) + resolution - 1 end`,
'sliding-log-string': (s: string): string => `local value = values and values[value_index]
if not value then
value = redis.pcall('GET', key${s})
if value and type(value) ~= 'string' then break end
end
local VERSION, HEADER, HEADER_SIZE, MAX_UNITS, SHORT_WINDOW = 3, '<I5I6', 11, 512, 4194304
local dead_until, resolution = now - window${s}, setting${s} or 1
local stamp = now + -now % resolution
local entry, four, size, max_offset = '<I3B', '<I3xI3xI3xI3', 4, 16777215
if window${s} > SHORT_WINDOW then entry, four, size, max_offset = '<I4B', '<I4xI4xI4xI4', 5, 4294967295 end
local is_live, is_ttl_due = false, true
if value then
local length = #value
local count = (length - HEADER_SIZE) / size
if count < 1 or count > MAX_UNITS or count % 1 ~= 0 then break end
local version, base = unpack_struct(HEADER, value)
local last, hint = unpack_struct(entry, value, length - size + 1)
local offset, dead_offset = stamp - base, dead_until - base
if version ~= VERSION or last > offset or offset > max_offset then break end
if last > dead_offset then
is_live = true
local head, high, first = hint, count - 1, nil
if hint + 2 > high then head = 0
else
local before, one, two, three = unpack_struct(four, value, HEADER_SIZE + 1 + (hint - 1) * size)
if hint > 0 and before > dead_offset then head, high, first = 0, hint - 1, before
elseif one > dead_offset then high, first = head, one
elseif two > dead_offset then
head, first = hint + 1, two
high = head
elseif three > dead_offset then
head, first = hint + 2, three
high = head
else
local probe, step = hint + 4, 2
head = hint + 3
while probe < high do
local time = unpack_struct(entry, value, HEADER_SIZE + 1 + probe * size)
if time > dead_offset then
high, first = probe, time
break
end
head, probe, step = probe + 1, probe + step, step * 2
end
end
end
while head < high do
local middle = (head + high - (head + high) % 2) / 2
local time = unpack_struct(entry, value, HEADER_SIZE + 1 + middle * size)
if time > dead_offset then high, first = middle, time else head = middle + 1 end
end
first = first or unpack_struct(entry, value, HEADER_SIZE + 1 + head * size)
amount${s} = count - head + units
detail${s} = (first > offset and stamp or base + first) + window${s} - now
if amount${s} > limit${s} then
if amount${s} == limit${s} + 1 then amount${s}, denied${s} = amount${s} - units, true else amount${s} = nil end
break
end
if head > amount${s} / 4 + 2 then
write${s}, data${s} = 'SET', value:sub(1, HEADER_SIZE) .. value:sub(HEADER_SIZE + 1 + head * size) .. pack(entry, offset, 0):rep(units)
else
write${s}, data${s} = 'APPEND', pack(entry, offset, head)
if units > 1 then data${s} = data${s}:rep(units) end
is_ttl_due = (base + last) * 4 < stamp * 4 - stamp * 4 % window${s}
end
end
end
if not is_live then
if units > limit${s} then break end
amount${s}, detail${s} = units, stamp + window${s} - now
write${s}, data${s} = 'SET', pack(HEADER, VERSION, stamp) .. pack(entry, 0, 0):rep(units)
end
if is_ttl_due then ttl${s} = window${s} + math.ceil(window${s} / ttl_parts) + resolution - 1 end`,
'token-bucket': (s: string): string => `local value = values and values[value_index]
if not value then
value = redis.pcall('GET', key${s})
if value and type(value) ~= 'string' then break end
end
local raised, capacity = units * window${s}, setting${s} or limit${s} * window${s}
if value then
if #value ~= 32 then break end
local version, incarnation, at, level, ends_at, lives_until = unpack_struct('<BI4I6I7I7I7', value)
if version ~= 1 or incarnation > 0 or at > now or level > 9007199254740991 then break end
if at >= ends_at or ends_at - at > level or ends_at > lives_until then break end
if now < ends_at then
level = level - (now - at) * limit${s}
if level < 0 then level = 0 end
if ends_at - now ~= math.ceil(level / limit${s}) then break end
if level + raised > capacity then
amount${s}, detail${s}, denied${s} = level, ends_at - now, true
break
end
raised = level + raised
ends_at = now + math.ceil(raised / limit${s})
if ends_at <= lives_until then
amount${s}, detail${s} = raised, ends_at - now
write${s}, where${s}, data${s} = 'SETRANGE', '5', pack('<I6I7I7', now, raised, ends_at)
break
end
end
end
if raised > capacity then break end
local drains = math.ceil(raised / limit${s})
local life = drains + math.ceil(drains / 4)
amount${s}, detail${s} = raised, drains
write${s}, data${s}, ttl${s} = 'SET', pack('<BI4I6I7I7I7', 1, 0, now, raised, now + drains, now + life), life`,
}
