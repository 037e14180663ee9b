-- Has a dead letter wait again, in one step: a process that dies leaves a dead letter, or a job to be delivered.
--
-- KEYS[1] to KEYS[8], ARGV[1] to ARGV[6]  those of reopen.lua: KEYS[4]  key of the job    KEYS[5]  dead letters    ARGV[6]  job id
-- KEYS[9]  jobs that are to be delivered    ARGV[7]  now, ms
-- Returns  number of the next delivery, or 0: it is no dead letter
if reopen(KEYS, ARGV) == 0 then return 0 end
local key, id = KEYS[4], ARGV[6]
redis.call('ZREM', KEYS[5], id)
redis.call('HDEL', key, 'finishedOn', 'failedReason', 'atm', 'dueAt', 'endedBy')
return deliver_again(key, KEYS[9], id, ARGV[7])
