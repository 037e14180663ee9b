-- The part of usual-call.lua that decides a single request of one policy, before all else is
-- defined.
if is_alone then
  local amount, detail, denied, write, where, data, ttl, extra
  cost = argv[7]
  -- include parts/cost
  if units > 0 then repeat
    if HAS_GRANTS and redis_call('EXISTS', key .. '~') == 1 then break end
    -- DECIDE
  until true end
  if amount and not (denied and (COUNTS_DENIED or is_charge)) then
    -- include parts/write
    -- include parts/report
    return { report, now }
  end
end
