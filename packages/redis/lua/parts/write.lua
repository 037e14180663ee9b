-- Writes a module's decision: `data`, by the command `write`, at the index or offset `where`. If
-- `extra` is true, it drops the head of a list. If `ttl` is set, the key lives for `ttl` ms plus
-- the margin. A lease `data` ends at `extra`; `where` is the score of all leases.
if write == 'SET' then
  redis_call('SET', key, data, 'PX', ttl + ttl_margin)
elseif write then
  if write == 'ZADD' then redis_call(write, key, where, '#', extra, data)
  elseif where then redis_call(write, key, where, data) else redis_call(write, key, data) end
  if extra == true then redis_call('LPOP', key) end
  if ttl then redis_call('PEXPIRE', key, ttl + ttl_margin) end
end
