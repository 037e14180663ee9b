-- Renumbers messages that were not confirmed in time: their process died before publishing them, or they were lost. An old message that
-- still exists is then stale.
--
-- args.before  when they should have been published, in ms    args.count  maximum number
-- args.isEmpty  whether the server's queue is empty: then confirmed messages of waiting jobs that are due are lost too
-- Returns  job id, number of the message and due time, for each
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
