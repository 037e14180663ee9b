-- Takes places back whose job was never added, since the process that asked for them died in between, or has ended. Forgets outcomes
-- that are too old.
--
-- args.before  places that are older than this, ms since 1970, are looked at    args.skip  how many to skip    args.count  how many
-- Returns  how many to skip next time, 0 at the end
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
