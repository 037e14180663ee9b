-- Returns whether runs must stop.
--
-- args.runs  job id and token of each
-- Returns  for each '', 'stop', or 'lost': another run has the job
local told = {}
for _, run in ipairs(args.runs) do
  local is_flagged = redis.call('EXISTS', prefix .. 'sluice:stop:' .. run[1]) == 1
  told[#told + 1] = owner_of(run[1]) ~= run[2] and 'lost' or is_flagged and 'stop' or ''
end
return told
