-- Decides any request, whatever the state of its keys. It is a function, so that a call whose keys
-- are all in a usual state does not pay for the definitions (40 µs).
--
-- define[name]() returns a part: an algorithm, or code shared by files of one algorithm. An
-- algorithm is a table of functions, the twin of the TypeScript module of the same name in core:
--     load(cell, key, policy)     reads the state of a key, as it counts now, into a cell
--     persist(cell, policy)       writes a cell that load has `repaired`: times after now are now
--     fits(cell, policy)          returns the units that may be taken; negative beyond the limit
--     take(cell, policy, units)   records units, even beyond the limit
--     wait(cell, policy, cost)    returns ms until the cost fits; absent if the report tells them
--     delay(cell, policy)         returns ms to hold an allowed request; absent if it holds none
--     give_back(cell, policy, units, at, refunded)
--                                 gives back up to `units` of the receipt with the time `at`, of
--                                 which `refunded` were given back earlier
--     renew(cell, policy, units, at)
--                                 extends a lease, and returns whether it still runs; absent if
--                                 there are no leases
--     clear(cell, policy)         deletes the state
--     block(cell, policy, ms)     denies all for `ms`; absent if keys cannot be blocked
--     counts_only_denials         true if allowed requests take nothing
--     report(cell, policy)        returns two integers >= 0, from which `fromTwin` of the
--                                 twin in core builds a state. The first decreases when
--                                 units are given back. A third one, if present, is how far
--                                 (ms) the key's time is ahead of a clock that was set back
--
-- A policy has limit, window, count_denied, setting (from `luaSetting` of the twin in core; nil for
-- undefined), and is_short, if a log is one string.
--
-- Cells are reused for the next request, since tables cost more than commands. So load sets every
-- field: key, incarnation, exists (whether the key has a value), repaired, and the algorithm's own.
-- Every change is written at once, so that the next request sees it. Times and units are integers.
local function define_general(reply)
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MAX_SAFE, is_server_clock = 9007199254740991, server_micros ~= nil

local define, defined, unreadable = {}, {}, 0
local function require_part(name)
  defined[name] = defined[name] or define[name]()
  return defined[name]
end

-- Clients misread integers just below 2^53: they add a digit's code before subtracting it.
local function exact(amount)
  return amount > 9007199254740900 and string.format('%.0f', amount) or amount
end

local function report_of(allowed, amount, detail)
  local denied = not allowed
  -- include parts/report
  return report
end

-- The most units that a window can count exactly (core: maxUnits).
local function max_units(window) return min(floor(MAX_SAFE / window), 140737488355327) end

local function write_string(key, value, ttl)
  redis_call('SET', key, value, 'PX', ttl + ttl_margin)
end

-- A key starts in incarnation 0. If it is deleted, a mark replaces it, and it continues in a unique
-- incarnation, so that earlier receipts do not apply to it.
local MARK_VERSION, MARK_FORMAT, MARK_LENGTH = 9, '<BI4', 5
-- With the server's clock they are numbered by microseconds: writing one takes longer than that.
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

-- The incarnation stored in a mark; nil for any other value.
local function read_mark(value)
  if #value ~= MARK_LENGTH or value:byte(1) ~= MARK_VERSION then return nil end
  local _, incarnation = unpack_struct(MARK_FORMAT, value)
  return incarnation
end

-- The count after a refund, which a count that has lost units ignores (core: unitsLeft). `load`
-- sets `policy.most`, from max_units.
local function units_left(count, units, policy)
  return count >= policy.most and count or max(0, count - units)
end

-- For an unreadable value: it counts as empty, and is reported.
local function reject()
  unreadable = unreadable + 1
  return nil
end

-- Reads a value that must be a string of a given length and start with one of two format versions;
-- nil if there is none.
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

-- ALGORITHMS
-- include parts/request
end
