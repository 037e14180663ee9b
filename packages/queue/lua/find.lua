-- Finds the job that an idempotency key stands for, if it is there, or is about to be added.
--
-- KEYS[1]  record of the idempotency key: `<fingerprint>:<job id>`    KEYS[2]  places
-- ARGV[1]  identity digest    ARGV[2]  prefix of the keys of jobs
-- Returns  its id, or ''
local known = redis.call('GET', KEYS[1])
if not known then return '' end
local id = string.sub(known, string.find(known, ':', 1, true) + 1)
if redis.call('EXISTS', ARGV[2] .. id) == 1 or redis.call('ZSCORE', KEYS[2], ARGV[1] .. ':' .. id) then return id end
return ''
