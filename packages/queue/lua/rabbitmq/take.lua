-- Takes a job for a run, when its message is delivered.
--
-- args.number  of the message
-- Returns  { 'run', data, ended runs, runs that started and never ended, 1 if any started, 1 if it must stop, 1 if another run had it },
--          { 'early', number of the next message, ms until it is due }, or { 'stale' } for an outdated message
local fields = { 'data', 'delivery', 'finishedOn', 'dueAt', 'token', 'atm', 'sluice:starts', 'sluice:began' }
local data, delivery, finished, due, before, ended, starts, began = unpack(redis.call('HMGET', key, unpack(fields)))
if not data or finished or tonumber(delivery) ~= args.number then return { 'stale' } end
redis.call('ZREM', unpublished, id .. ':' .. delivery)

local early = tonumber(due or '0') - now
if early > 0 then return { 'early', new_message(id), early } end

redis.call('HSET', key, 'token', args.token)
redis.call('SADD', prefix .. 'active', id)
local was_running = before and before ~= args.token and 1 or 0
return {
  'run', data, tonumber(ended or '0'), interrupted_of(starts, ended), began and 1 or 0, redis.call('EXISTS', flag), was_running,
}
