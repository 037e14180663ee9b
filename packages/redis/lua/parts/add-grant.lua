-- Grants up to `wanted` units from the `room` that is left for all. Sets `granted`, 0 for none.
local granted, size = again or math.min(wanted, math.floor(room / terms[3])), #added
if not again then
  -- No key has more than 1,000 grants.
  if granted <= 0 or #grants + size >= 3000 then
    granted = 0
  else
    added[size + 1], added[size + 2], added[size + 3] = now + terms[2], granted, terms[1]
    held, has_changed = held + granted, true
  end
end
