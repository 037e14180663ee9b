-- Gives the place of a job back, once it has ended, and counts down the time that its idempotency key is kept.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  flow    KEYS[4]  expiries    KEYS[5]  record of the idempotency key
-- KEYS[6]  BullMQ's lock of the job    KEYS[7]  flag of a job that is to stop
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  job id    ARGV[4]  now, ms    ARGV[5]  ms that the record counts from now on
-- ARGV[6]  the token of the run that ends, or '': one that has lost its lock is run elsewhere meanwhile, and keeps its place
-- Returns  1 if it had a place
if ARGV[6] ~= '' and redis.call('GET', KEYS[6]) ~= ARGV[6] then return 0 end
redis.call('DEL', KEYS[7])
end_record(KEYS[5], ARGV[3], ARGV[5])
if give_back(KEYS[1], KEYS[2], KEYS[4], ARGV[1], ARGV[2]) == 0 then return 0 end
count_flow(KEYS[3], 'o', tonumber(ARGV[4]))
return 1
