-- Carries out what the `terms` of a call (grants.lua) say about `grants`, in one pass. Closed ones
-- leave the list, and renewed ones go to `added`. Sets `held`, the units of both lists, `recorded`,
-- the units that were spent, and `again`, the units of the grant of a call that came before.
-- A late or repeated call records nothing, since no more units are held than it names.
local held, recorded, again, has_changed, added, places, at, left = 0, 0, nil, false, {}, {}, 4, 1
while at <= #terms do
  local id = terms[at]
  places[id < 0 and -id or id] = at
  at = at + (id < 0 and 3 or 2)
end
for i = 1, #grants, 3 do
  local ends_at, units, id = grants[i], grants[i + 1], grants[i + 2]
  local place = places[id]
  if place then
    local spent = terms[place + 1]
    has_changed = true
    if terms[place] < 0 then
      local rest = spent < units and spent or units
      spent = units - spent - terms[place + 2]
      if rest > 0 then
        local new_end, size = now + terms[2], #added
        added[size + 1], added[size + 2], added[size + 3] = new_end > ends_at and new_end or ends_at, rest, id
        held = held + rest
      end
    elseif spent > units then
      spent = units
    end
    if spent > 0 then recorded = recorded + spent end
  else
    if id == terms[1] then again = units end
    grants[left], grants[left + 1], grants[left + 2] = ends_at, units, id
    left, held = left + 3, held + units
  end
end
for i = #grants, left, -1 do grants[i] = nil end
