-- Undoes what consume wrote; before: the value that was there, or false. A penalty gives nil: it wrote nothing.
local function undo(key, before)
  if before then redis_call('SET', key, before, 'KEEPTTL') elseif before == false then redis_call('DEL', key) end
end
