-- Jobs of BullMQ: a running job is in the list `active`, and its lock has the token of the run. A waiting job is in one of four other keys.
-- Processes of the previous version look up jobs in the set of ended jobs, and never extend its TTL.
local ended_expires = false
local function owner_of(each) return redis.call('GET', prefix .. each .. ':lock') end
local function is_running(each) return redis.call('LPOS', prefix .. 'active', each) end
local function count_running() return redis.call('LLEN', prefix .. 'active') end

-- Takes the job from a run, or from the waiting jobs. Returns false if it is not there.
local function take_out(token)
  if token then
    if owner_of(id) ~= token then return false end
    redis.call('LREM', prefix .. 'active', -1, id)
    redis.call('SREM', prefix .. 'stalled', id)
    return redis.call('DEL', key .. ':lock') == 1
  end
  if redis.call('ZREM', prefix .. 'delayed', id) + redis.call('ZREM', prefix .. 'prioritized', id) > 0 then return true end
  -- Oldest jobs are at the end.
  return redis.call('LREM', prefix .. 'wait', -1, id) > 0 or redis.call('LREM', prefix .. 'paused', -1, id) > 0
end

-- BullMQ itself moves a job that is put back, or a dead letter that is retried.
local function wait_again() return 1 end
local requeue = wait_again
