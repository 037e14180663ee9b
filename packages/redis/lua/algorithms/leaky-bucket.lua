-- leaky-bucket: a bucket as a queue, from which requests leave one unit after the other (bucket.lua).
local leaky_bucket = {}
for name, part in pairs(bucket) do leaky_bucket[name] = part end
-- What a request has to be told is more than that.
leaky_bucket.consume_one, leaky_bucket.undo_one, leaky_bucket.prepare = nil, nil, nil
algorithms['leaky-bucket'] = leaky_bucket

-- A request goes on when all that came before it has drained.
function leaky_bucket.delay(cell, policy)
  if cell.level == 0 then return 0 end
  return min(ceil(cell.level / policy.limit), cell.ends_at - now)
end
