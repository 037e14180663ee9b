-- Prepares a dead letter to run again: it has its place, its idempotency key, and no runs behind it.
--
-- KEYS[1]  places    KEYS[2]  identities    KEYS[3]  record of the idempotency key
-- KEYS[4]  key of the job    KEYS[5]  dead letters    KEYS[6]  flag of a job that is to stop
-- KEYS[7]  ids of the dead letters that are kept    KEYS[8]  their bytes
-- ARGV[1]  place     ARGV[2]  identity digest    ARGV[3]  when it was enqueued, ms    ARGV[4]  ms that the record is kept while the job is open
-- ARGV[5]  what the record says, or '' without an idempotency key    ARGV[6]  job id
-- Returns  1 if it is a dead letter
return reopen(KEYS, ARGV)
