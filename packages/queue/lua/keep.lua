-- Counts what is kept of a job that has ended, drops what nobody needs any more, and forgets what is too old, or too much.
--
-- KEYS[1]  key of the job    KEYS[2]  sorted set of the jobs that are completed, or failed    KEYS[3]  ids of what is kept    KEYS[4]  its bytes
-- ARGV[1]  job id, or '': forgets only    ARGV[2]  now, ms
-- ARGV[3]  ms that it is kept, or '' for a dead letter    ARGV[4]  what is kept of the data of the job, or '' for all of it
-- ARGV[5]  how many are kept    ARGV[6]  how many bytes    ARGV[7]  bytes that a job takes beside its texts    ARGV[8]  prefix of the keys of jobs
-- Returns  the sum of the bytes
return keep(KEYS, ARGV)
