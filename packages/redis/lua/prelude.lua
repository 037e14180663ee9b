-- Defines how any request is decided, in whatever state its keys are. It is a function, because a
-- call in which all keys are in a usual state must not pay for the definitions (40 µs).
--
-- define[name]() returns a part: an algorithm, or what several files of one algorithm share. An
-- algorithm is a table of functions, the twin of the TypeScript module of its name in core:
--     load(cell, key, policy)     reads what a key has taken, as it counts now, into a cell
--     persist(cell, policy)       writes a cell that load has `repaired`: times after now are now
--     fits(cell, policy)          returns the units that may still be taken; below 0 if more count
--     take(cell, policy, units)   records units, asked or not
--     wait(cell, policy, cost)    returns ms until the cost fits; left out if the report tells
--     delay(cell, policy)         returns ms that an allowed request is held; left out if none is
--     give_back(cell, policy, units, at, refunded)
--                                 gives back up to so many units that a receipt names by `at`, of
--                                 which `refunded` units were given back before
--     renew(cell, policy, units, at)
--                                 prolongs a lease, and returns whether it still runs; left out if
--                                 there are no leases
--     clear(cell, policy)         forgets everything
--     block(cell, policy, ms)     denies all for so many ms; left out if keys cannot be blocked
--     counts_only_denials         true if requests that are allowed take nothing
--     report(cell, policy)        returns two whole numbers >= 0, from which `fromTwin` of the
--                                 twin in core makes a state. The first falls when
--                                 units are given back. A third one, if there is one, tells how far
--                                 (ms) the time of the key is ahead of a clock that was set back
--
-- A policy has limit, window, count_denied, setting (what `luaSetting` of the twin in core returns;
-- nil for undefined), and is_short, if a log is one string.
--
-- Cells are used again for the next request, since tables cost more than commands, so load sets
-- every field: key, incarnation, exists (whether the key held anything), repaired, and its own.
-- Every change is written at once, so that the next request sees it. Times and units are whole.
local function define_general(reply)
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local MAX_SAFE, is_server_clock = 9007199254740991, server_micros ~= nil

local define, defined, unreadable = {}, {}, 0
local function require_part(name)
  defined[name] = defined[name] or define[name]()
  return defined[name]
end

-- Clients misread integers just below 2^53: they add a digit's code before they subtract it.
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

-- Every key is in incarnation 0. If it is forgotten, a mark is left in its place, and it goes on in
-- an incarnation that no other has, so that none of its earlier receipts reaches it.
local MARK_VERSION, MARK_FORMAT, MARK_LENGTH = 9, '<BI4', 5
-- The server's clock counts them from its microseconds: each takes longer than one to write.
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

-- The incarnation that a mark tells; nil for any other value.
local function read_mark(value)
  if #value ~= MARK_LENGTH or value:byte(1) ~= MARK_VERSION then return nil end
  local _, incarnation = unpack_struct(MARK_FORMAT, value)
  return incarnation
end

-- The count after a refund; none of a count that has lost units (core: unitsLeft).
local function units_left(count, units, policy)
  return count >= policy.most and count or max(0, count - units)
end

-- For a value that cannot be read: it counts as empty, and is reported.
local function reject()
  unreadable = unreadable + 1
  return nil
end

-- Reads a value that must be a string of one length, and begin with the version of its format, or
-- with another; nil where there is none.
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
