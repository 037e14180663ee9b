-- Reads the value for a module that expects a string. A key that MGET shows as absent may have
-- another type: with `is_new`, it is written only if it is absent.
local value = values and values[value_index]
if values then
  is_new = not value
else
  value = redis.pcall('GET', key)
  if value and type(value) ~= 'string' then break end
end
