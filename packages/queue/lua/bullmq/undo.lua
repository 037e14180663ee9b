-- Gives the place of a job back that was not added, and forgets the record of its idempotency key; unless the job is there all the same,
-- or another request with the key is about to add it.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  expiries    KEYS[4]  BullMQ's key of the job    KEYS[5]  record of the idempotency key
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  who claimed to add it, or '' without an idempotency key
-- Returns  1 if it had a place
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
if ARGV[3] ~= '' then
  local claim = KEYS[5] .. ':claim'
  if redis.call('GET', claim) ~= ARGV[3] then return 0 end
  redis.call('DEL', KEYS[5], claim)
end
return give_back(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2])
