-- Gives new numbers to messages that nobody has confirmed for long: their process died before it published them, or they were lost. A
-- message that is there all the same stands for nothing then.
--
-- args.before  when they were to be published, ms    args.count  how many
-- args.isEmpty  whether the server's queue is empty: then confirmed messages are gone too, of jobs that wait and are due
-- Returns  job id, number of the message and when the job is due, for each
if args.isEmpty then
  for _, each in ipairs(redis.call('ZRANGE', places, 0, args.count)) do
    local waiting = id_in(each)
    local number, token, at, due = unpack(redis.call('HMGET', prefix .. waiting, 'delivery', 'token', 'deliveredAt', 'dueAt'))
    if number and not token and math.max(tonumber(at or '0'), tonumber(due or '0')) < args.before then
      redis.call('ZADD', unpublished, 'NX', 0, waiting .. ':' .. number)
    end
  end
end

local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', unpublished, '-inf', args.before, 'LIMIT', 0, args.count)) do
  local number = id_in(member)
  local waiting = string.sub(member, 1, -#number - 2)
  local newest, finished, token, due =
    unpack(redis.call('HMGET', prefix .. waiting, 'delivery', 'finishedOn', 'token', 'dueAt'))
  redis.call('ZREM', unpublished, member)
  if newest == number and not finished and not token then
    found[#found + 1] = waiting
    found[#found + 1] = new_message(waiting)
    found[#found + 1] = due or '0'
  end
end
return found
