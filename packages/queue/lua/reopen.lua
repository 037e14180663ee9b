-- Prepares a dead letter to run again: it has its place, its idempotency key, and no runs behind it.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  record of the idempotency key
-- KEYS[4]  key of the job    KEYS[5]  dead letters    KEYS[6]  flag of a job that is to stop
-- KEYS[7]  ids of the dead letters that are kept    KEYS[8]  their bytes
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  when it was enqueued, ms    ARGV[4]  ms that the record is kept while the job is open
-- ARGV[5]  what the record says, or '' without an idempotency key    ARGV[6]  job id
-- Returns  1 if it is a dead letter
if not redis.call('ZSCORE', KEYS[5], ARGV[6]) then return 0 end
redis.call('DEL', KEYS[6])
uncount_kept(KEYS[7], KEYS[8], ARGV[6])
if redis.call('ZADD', KEYS[1], 'NX', ARGV[3], ARGV[1]) == 1 then redis.call('HINCRBY', KEYS[2], ARGV[2], 1) end
redis.call('HDEL', KEYS[4], 'sluice:starts', 'stc')
redis.call('HSET', KEYS[4], 'sluice:began', 1)
if ARGV[5] ~= '' then
  -- The key may stand for a newer job by now, which keeps it.
  redis.call('SET', KEYS[3], ARGV[5], 'NX', 'PX', ARGV[4])
  if redis.call('GET', KEYS[3]) == ARGV[5] then redis.call('PEXPIRE', KEYS[3], ARGV[4]) end
end
return 1
