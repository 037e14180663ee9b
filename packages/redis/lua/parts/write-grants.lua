-- Puts the grants that are `added` behind those that end no later, and writes all `grants`.
for i = 1, #added, 3 do
  local ends_at, place = added[i], #grants + 1
  while place > 1 and grants[place - 3] > ends_at do
    grants[place], grants[place + 1], grants[place + 2] = grants[place - 3], grants[place - 2], grants[place - 1]
    place = place - 3
  end
  grants[place], grants[place + 1], grants[place + 2] = ends_at, added[i + 1], added[i + 2]
end
local size = #grants
if size == 0 then
  redis_call('DEL', grants_key)
else
  local grants_value = pack('<B' .. ('I6I6I7'):rep(size / 3), 1, unpack(grants))
  redis_call('SET', grants_key, grants_value, 'PX', grants[size - 2] - now + window + resolution + ttl_margin)
end
