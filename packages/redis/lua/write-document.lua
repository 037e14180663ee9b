-- Replaces a shared document and records the change, unless its revision has changed.
-- KEYS[1]  the revision, KEYS[2] the text, KEYS[3] the log, newest first
-- ARGV[1]  the revision to replace, ARGV[2] the text, ARGV[3] the record
-- ARGV[4]  number of records to keep
-- Returns  1 if it was replaced, else 0
local revision = tonumber(redis.call('GET', KEYS[1]) or '0')
if revision ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], revision + 1)
redis.call('SET', KEYS[2], ARGV[2])
redis.call('LPUSH', KEYS[3], ARGV[3])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[4]) - 1)
return 1
