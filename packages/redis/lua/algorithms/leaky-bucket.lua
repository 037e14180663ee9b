-- leaky-bucket: a bucket as a queue that units leave one by one (token-bucket.lua).
define['leaky-bucket'] = function()
  local leaky_bucket = {}
  for name, part in pairs(require_part('token-bucket')) do leaky_bucket[name] = part end

  -- A request is held until all earlier units have drained.
  function leaky_bucket.delay(cell, policy)
    if cell.level == 0 then return 0 end
    return min(ceil(cell.level / policy.limit), cell.ends_at - cell.at)
  end

  return leaky_bucket
end
