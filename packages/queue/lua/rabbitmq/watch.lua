-- Tells runs whether they are to stop.
--
-- KEYS[1]  any key of the queue
-- ARGV[1]  prefix of the keys of jobs    ARGV[2]  prefix of the flags of jobs that are to stop    ARGV[3] and on: job id and token of each run
-- Returns  for each run '', 'stop', or 'lost': another run has the job
local told = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  local says = ''
  if redis.call('EXISTS', ARGV[2] .. id) == 1 then says = 'stop' end
  if redis.call('HGET', ARGV[1] .. id, 'token') ~= token then says = 'lost' end
  told[#told + 1] = says
end
return told
