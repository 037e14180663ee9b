-- Puts a job back that a run has: for the same message again, or for another one that is to be published.
--
-- KEYS[1]  key of the job    KEYS[2]  running jobs    KEYS[3]  jobs that are to be delivered
-- ARGV[1]  job id    ARGV[2]  token of the run    ARGV[3]  now, ms
-- ARGV[4]  how: 'returned', by the same message; 'postponed', or 'retry', which counts the run
-- ARGV[5]  when it is due, ms    ARGV[6]  error of the run    ARGV[7]  1 if the run began, and does not count
-- Returns  number of the next delivery, 0 for the same message, or -1: the run does not have the job
local key, id, how = KEYS[1], ARGV[1], ARGV[4]
local is_ours = redis.call('HGET', key, 'token') == ARGV[2]
-- A run that ended in a process that lives killed nobody.
if ARGV[7] == '1' and redis.call('EXISTS', key) == 1 then redis.call('HINCRBY', key, 'sluice:starts', -1) end
if not is_ours then return -1 end
redis.call('HDEL', key, 'token')
redis.call('SREM', KEYS[2], id)
if how == 'returned' then return 0 end
if how == 'retry' then
  redis.call('HINCRBY', key, 'atm', 1)
  redis.call('HSET', key, 'failedReason', ARGV[6])
end
redis.call('HSET', key, 'dueAt', ARGV[5])
return deliver_again(key, KEYS[3], id, ARGV[3])
