-- Jobs of RabbitMQ: a running job is in the set `active`, and has the token of the run. Each message of a job has a number: only the newest
-- counts. A message is in `unpublished` until the server has confirmed it.
local ended_expires = true
local function owner_of(each) return redis.call('HGET', prefix .. each, 'token') end
local is_running = owner_of
local function count_running() return redis.call('SCARD', prefix .. 'active') end

-- Takes the job from a run, or from the waiting jobs. Returns false if it is not there.
local function take_out(token)
  if owner_of(id) ~= (token or false) then return false end
  redis.call('HDEL', key, 'token')
  redis.call('SREM', prefix .. 'active', id)
  return true
end

local function new_message(each)
  local number = redis.call('HINCRBY', prefix .. each, 'delivery', 1)
  redis.call('HSET', prefix .. each, 'deliveredAt', now)
  redis.call('ZADD', unpublished, now, each .. ':' .. number)
  return number
end

-- Makes a running job wait. Returns the number of its next message, or 0 for the same message.
local function wait_again()
  take_out(args.token)
  if args.outcome == 'returned' then return 0 end
  redis.call('HSET', key, 'dueAt', args.dueAt)
  return new_message(id)
end

-- Makes a dead letter wait.
local function requeue()
  redis.call('ZREM', prefix .. 'failed', id)
  redis.call('HDEL', key, 'finishedOn', 'failedReason', 'atm', 'dueAt', 'endedBy')
  return new_message(id)
end
