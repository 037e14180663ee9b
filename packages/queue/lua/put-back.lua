-- Puts a running job back.
--
-- args.run  id of the run    args.outcome  'returned', 'postponed', or 'retry', which counts the run
-- args.uncounts  whether the run started but does not count    ARGV[3]  the error of a run that failed    args.dueAt  when it is due, in ms
-- Returns  number of the next message, 0 for the same message, or -1: the run does not have the job
-- A run that ended did not crash its process, even if another run has the job by now. It is subtracted once: the reply to a first call may
-- have been lost.
if args.uncounts and redis.call('EXISTS', key) == 1 and redis.call('HGET', key, 'sluice:uncounted') ~= args.run then
  redis.call('HSET', key, 'sluice:uncounted', args.run)
  redis.call('HINCRBY', key, 'sluice:starts', -1)
end
if owner_of(id) ~= args.token then return -1 end
if args.outcome == 'retry' and redis.call('HGET', key, 'endedBy') ~= args.run then
  redis.call('HINCRBY', key, 'atm', 1)
  redis.call('HSET', key, 'failedReason', text, 'endedBy', args.run)
end
return wait_again()
