-- Prepares a dead letter to run again: it has its place, its idempotency key, and no runs behind it. Its keys and arguments are those of
-- reopen.lua. Returns 1 if it is a dead letter.
local function reopen(keys, args)
  if not redis.call('ZSCORE', keys[5], args[6]) then return 0 end
  redis.call('DEL', keys[6])
  uncount_kept(keys[7], keys[8], args[6])
  if redis.call('ZADD', keys[1], 'NX', args[3], args[1]) == 1 then redis.call('HINCRBY', keys[2], args[2], 1) end
  redis.call('HDEL', keys[4], 'sluice:starts', 'stc')
  redis.call('HSET', keys[4], 'sluice:began', 1)
  if args[5] ~= '' then
    -- The key may stand for a newer job by now, which keeps it.
    redis.call('SET', keys[3], args[5], 'NX', 'PX', args[4])
    if redis.call('GET', keys[3]) == args[5] then redis.call('PEXPIRE', keys[3], args[4]) end
  end
  return 1
end
