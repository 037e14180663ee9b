-- Has a dead letter that reopen.lua has prepared wait again.
--
-- KEYS[1]  key of the job    KEYS[2]  dead letters    KEYS[3]  jobs that are to be delivered
-- ARGV[1]  job id    ARGV[2]  now, ms
-- Returns  number of the next delivery, or 0: another process was first
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[1], 'finishedOn', 'failedReason', 'atm', 'dueAt', 'endedBy')
return deliver_again(KEYS[1], KEYS[3], ARGV[1], ARGV[2])
