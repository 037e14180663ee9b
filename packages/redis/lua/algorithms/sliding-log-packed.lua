-- The packed encoding of sliding-log: a string for low limits, a list of blocks for high ones. A
-- stored value keeps its layout, except that a string becomes blocks if its limit or its units
-- outgrow it.
define['layouts'] = function()
  -- Most calls need only one layout, and defining the other takes time.
  local block_log, layouts = require_part('block-log'), {}
  local function short_log() return require_part('short-log') end

  -- Converts a string into blocks, which take the next units.
  function layouts.grow(cell, policy, units, most)
    cell.layout = block_log
    if cell.used > 0 then block_log.write_anew(cell, policy, short_log().entries(cell), most) end
    block_log.take(cell, policy, units, most)
  end

  -- A string whose limit was raised.
  local function grown_log() return setmetatable({ take = layouts.grow }, { __index = short_log() }) end

  -- A value that is not a log counts as none; nil: there is no value.
  local function read_value(cell, policy, value)
    if value == nil or not short_log().read(cell, policy, value) then reject() end
  end

  local function read_low(cell, key, policy)
    cell.layout = short_log()
    local value = redis.pcall('GET', key)
    if not value then
      cell.exists = false
    elseif type(value) == 'string' then
      read_value(cell, policy, value)
    elseif not block_log.read(cell, key, policy) then
      cell.layout = short_log()
      reject()
    end
  end

  local function read_high(cell, key, policy)
    local found = block_log.read(cell, key, policy)
    if found then return end
    local value = found == nil and redis.pcall('GET', key)
    if type(value) == 'string' then read_value(cell, policy, value) else reject() end
    cell.layout = cell.used > 0 and grown_log() or block_log
  end

  function layouts.read(cell, key, policy)
    if policy.is_short then read_low(cell, key, policy) else read_high(cell, key, policy) end
  end

  function layouts.forget(cell) cell.layout, cell.used, cell.first = short_log(), 0, nil end

  return layouts
end
