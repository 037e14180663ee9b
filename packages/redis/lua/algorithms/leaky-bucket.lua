-- leaky-bucket: a bucket as a queue, from which units leave one by one (token-bucket.lua).
define['leaky-bucket'] = function()
  local leaky_bucket = {}
  for name, part in pairs(require_part('token-bucket')) do leaky_bucket[name] = part end

  -- A request goes on when all that came before it has drained.
  function leaky_bucket.delay(cell, policy)
    if cell.level == 0 then return 0 end
    return min(ceil(cell.level / policy.limit), cell.ends_at - cell.at)
  end

  return leaky_bucket
end
