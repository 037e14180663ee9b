-- Undoes what consume wrote; tail: the last block before. It was replaced, or another block put behind it.
local function undo(key, tail)
  if redis_call('LINDEX', key, '-2') == tail then redis_call('RPOP', key) else redis_call('LSET', key, '-1', tail) end
end
