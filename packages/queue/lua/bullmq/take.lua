-- Keeps or restores a job's place when a worker takes it: an earlier version gave the place back before it ended the job.
--
-- Returns  { ended runs, runs that started and never ended, 1 if any started, 1 if it must stop }
hold_place()
local ended, starts, began = unpack(redis.call('HMGET', key, 'atm', 'sluice:starts', 'sluice:began'))
return { tonumber(ended or '0'), interrupted_of(starts, ended), began and 1 or 0, redis.call('EXISTS', flag) }
