-- Finds the job of an idempotency key, if it exists or is about to be added.
--
-- Returns  its id, or ''
local known = redis.call('GET', record)
if not known then return '' end
local found = id_in(known)
if redis.call('EXISTS', prefix .. found) == 1 or redis.call('ZSCORE', places, job.identity .. ':' .. found) then return found end
return ''
