-- The packed encoding of sliding-log: a string for low limits, a list of blocks for high ones. A
-- stored value keeps its layout, except that a string becomes blocks if its limit or its units
-- outgrow it.
define['layouts'] = function()
  local layouts = {}

  -- Most calls need only one layout, and defining the other takes time.
  local function layout_of(is_list) return require_part(is_list and 'block-log' or 'short-log') end

  -- Converts a string into blocks, which take the next units.
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
    -- A value that is not a log counts as none.
    if not value then
      cell.exists = false
    elseif type(value) ~= 'string' or not layout.read(cell, policy, value) then
      reject()
    elseif cell.used > 0 then
      cell.layout = layout
    end
  end

  return layouts
end
