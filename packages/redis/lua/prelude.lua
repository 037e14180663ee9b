-- What every part of the script shares. The parts are put together in this order: prelude, algorithms, decide.
--
-- An algorithm is a table of functions, the twin of the TypeScript module of its name in @sluice/core:
--
--   load(key)                        the cell of a key: what it has taken, as far as it had to be read
--   settle(cell, check, now, keep)   moves stored times that lie after now to now; keep: the change may be written
--   used(cell, check, now)           units that count at now
--   ms_until(cell, check, now, n)    ms until no more than n units count; 0 when that holds at now
--   reset_ms(cell, check, now)       the effective window of what remains
--   take(cell, check, now)           records check.cost units; returns the time that a refund names
--   give_back(cell, check, now, at)  gives back up to check.cost units taken at that time
--   clear(cell)                      forgets everything
--   save(cell, check, now)           writes what has changed; the key then lives until it counts for nothing
--
-- A cell has incarnation (nil when the key holds nothing; another once all that it held has expired), changed, and unreadable (a value of an unknown format, which
-- counts as empty). A check has limit, window, resolution, aligned, count_denied, cost, and ttl_margin.
-- Times are whole ms and units whole numbers: doubles hold them exactly up to 2^53.
local algorithms = {}

-- Numbers at which the running incarnations of this call begin, and the next one.
local next_incarnation

local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpack_struct = struct.pack, struct.unpack

local MAX_SAFE = 9007199254740991

local function new_incarnation()
  next_incarnation = (next_incarnation + 1) % 4294967296
  return next_incarnation
end

-- The most units that a window can count exactly.
local function max_units(window)
  return min(floor(MAX_SAFE / window), 281474976710655)
end

-- The window in which no more than what remains may be used; the whole window when nothing counts (core: effectiveWindowMs).
local function effective_window(algorithm, cell, check, now)
  local used = algorithm.used(cell, check, now)
  if used == 0 or check.limit == 0 then return check.window end
  -- The next unit is free when one fewer counts than now, and fewer than the limit.
  local ms_to_next_unit = algorithm.ms_until(cell, check, now, min(used, check.limit) - 1)
  local remaining = max(0, check.limit - used)
  return max(ms_to_next_unit, ceil(remaining * check.window / check.limit))
end

-- The time under which a log records a unit taken at now: rounded up, so that it never leaves too early.
local function recorded_at(check, now)
  local beyond = now % check.resolution
  if beyond == 0 then return now end
  return now - beyond + check.resolution
end

-- Reads a value that must be a string of one of the given lengths, and begin with the version of its format.
local function read_string(key, version, length)
  local value = redis.pcall('GET', key)
  if not value then return nil, false end
  if type(value) ~= 'string' or #value ~= length or value:byte(1) ~= version then return nil, true end
  return value, false
end

local function write_string(cell, value, ttl)
  redis.call('SET', cell.key, value, 'PX', ttl)
end
