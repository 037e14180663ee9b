-- Reads the value for a module that expects a string. MGET shows a key of another type as absent,
-- so only GET tells that a key is new.
local value = values and values[value_index]
if not value then
  value = redis.pcall('GET', key)
  if value and type(value) ~= 'string' then break end
end
