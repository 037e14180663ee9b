-- Has a job keep, or take back, its place as a worker takes it: an earlier version gives the place back before it ends the job.
--
-- Returns  { runs that ended, runs that began and never ended, 1 if any began, 1 if it is to stop }
hold_place()
local ended, starts, began = unpack(redis.call('HMGET', key, 'atm', 'sluice:starts', 'sluice:began'))
return { tonumber(ended or '0'), interrupted_of(starts, ended), began and 1 or 0, redis.call('EXISTS', flag) }
