-- Ends a waiting or running job, and counts the data kept of it.
--
-- args.how   'run'; 'cancelled'; 'expired', not for started jobs; or 'withdrawn', as if it had never been added
-- args.run   id of the run    args.set  'completed' or 'failed'    args.flagMs  ms to keep the stop flag, until a worker has seen it
-- ARGV[3]    the outcome, or the error of a dead letter
-- Returns  'ended', 'running' (a cancelled one is flagged), 'finished' or 'unknown'
local how, is_dead = args.how, args.set == 'failed'
if redis.call('EXISTS', key) == 0 then return 'unknown' end
if redis.call('HEXISTS', key, 'finishedOn') == 1 then
  -- The reply to the first call may have been lost.
  return how == 'run' and redis.call('HGET', key, 'endedBy') == args.run and 'ended' or 'finished'
end
if how == 'expired' then
  redis.call('ZREM', expiries, place)
  if redis.call('HEXISTS', key, 'sluice:began') == 1 then return 'running' end
end
if not take_out(how == 'run' and args.token) then
  if how == 'cancelled' then redis.call('SET', flag, '1', 'PX', args.flagMs) end
  return 'running'
end

give_back(place, job.identity)
redis.call('DEL', flag)
if how == 'withdrawn' then
  redis.call('DEL', key, key .. ':logs')
  return 'ended'
end
count_flow('o')
-- Once its job has ended, the record is kept for this long.
if job.record and redis.call('GET', record) == says then redis.call('PEXPIRE', record, job.retentionMs) end
redis.call('HSET', key, is_dead and 'failedReason' or 'returnvalue', text, 'finishedOn', now, 'endedBy', args.run or '')
redis.call('HINCRBY', key, 'atm', 1)
redis.call('ZADD', prefix .. args.set, now, id)
keep(args.set)
return 'ended'
