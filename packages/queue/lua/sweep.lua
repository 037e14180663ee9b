-- Takes back places whose job has ended, or was never added because its process died. Deletes outcomes that are too old.
--
-- args.before  checks places older than this, in ms since 1970    args.skip  number to skip    args.count  maximum number
-- Returns  number to skip next time, 0 at the end
local taken = 0
local found = redis.call('ZRANGEBYSCORE', places, '-inf', args.before, 'LIMIT', args.skip, args.count)
for _, each in ipairs(found) do
  local waiting = id_in(each)
  local exists = redis.call('EXISTS', prefix .. waiting) == 1
  if not exists or redis.call('HEXISTS', prefix .. waiting, 'finishedOn') == 1 then
    taken = taken + give_back(each, string.sub(each, 1, -#waiting - 2))
  end
end
if #found == args.count then return args.skip + #found - taken end
keep('completed')
return 0
