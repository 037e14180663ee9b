-- Reads the value for a module that reads a string. A key that MGET shows as absent may hold
-- another type, which GET refuses.
local value = values and values[value_index] or redis.pcall('GET', key)
if value and type(value) ~= 'string' then break end
