-- Returns the value of a key of grants in hex: clients decode replies as UTF-8.
-- KEYS[1]  the key (algorithms/granted-log.lua)
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' then return '' end
return (value:gsub('.', function(char) return string.format('%02x', char:byte()) end))
