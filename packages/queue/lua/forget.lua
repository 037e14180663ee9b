-- Forgets a dead letter, and the record of its idempotency key.
--
-- KEYS and ARGV are those of reopen.lua: KEYS[3]  record of the idempotency key    KEYS[4]  key of the job
-- KEYS[5]  dead letters    KEYS[7]  ids of the dead letters that are kept    KEYS[8]  their bytes
-- ARGV[5]  what the record says, or '' without an idempotency key    ARGV[6]  job id
-- Returns  1 if it was a dead letter
if redis.call('ZREM', KEYS[5], ARGV[6]) == 0 then return 0 end
uncount_kept(KEYS[7], KEYS[8], ARGV[6])
redis.call('DEL', KEYS[4], KEYS[4] .. ':logs')
-- The key may stand for a newer job by now, which keeps it.
if ARGV[5] ~= '' and redis.call('GET', KEYS[3]) == ARGV[5] then redis.call('DEL', KEYS[3]) end
return 1
