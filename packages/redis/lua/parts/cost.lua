-- Reads the `cost` of a key, if the call has costs.
if cost then
  units, is_charge = tonumber(cost), false
  if not units then setting, units = cost, cost:find(':', 1, true) and 1 or 0
  elseif units < 0 then units, is_charge = -units, true end
end
