-- Gives the place of a job back, once it has ended, and forgets the record of its idempotency key if it was never added.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  flow    KEYS[4]  record of the idempotency key    KEYS[5]  BullMQ's lock of the job
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  now, ms
-- ARGV[4]  'ended', or 'undone' for a job that was not added
-- ARGV[5]  the token of the run that ends, or '': one that has lost its lock is run elsewhere meanwhile, and keeps its place
-- Returns  1 if it had a place
local places, identities, flow, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local place, identity, now = ARGV[1], ARGV[2], tonumber(ARGV[3])

if ARGV[5] ~= '' and redis.call('GET', KEYS[5]) ~= ARGV[5] then return 0 end
if redis.call('ZREM', places, place) == 0 then return 0 end
if redis.call('HINCRBY', identities, identity, -1) <= 0 then redis.call('HDEL', identities, identity) end
if ARGV[4] == 'ended' then
  count_flow(flow, 'o', now)
else
  redis.call('DEL', record)
end
return 1
