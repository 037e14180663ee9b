-- Extends parts/request.lua for policies with grants (algorithms/granted-log.lua). Receipts are
-- replaced by the terms of each key: { id, lifetime of the grant in ms, divisor of the remaining
-- units, closed and renewed grants }; {} for other policies. A closed grant is its id and the units
-- spent. A renewed one is its negative id, the units left, and the units that come back.

-- The report has two more fields: the units granted, and whether units were recorded.
function operations.grant(policies, costs, at, receipts)
  for i = 1, #policies do
    local cell, policy, units, has_recorded = cells[i], policies[i], 0, false
    local algorithm = policy.algorithm
    if algorithm.settle then
      units, has_recorded = algorithm.settle(cell, policy, receipts[at + i], costs[at + i])
    end
    local amount, detail = algorithm.report(cell, policy)
    reply[#reply + 1] = {
      units > 0 and 1 or 0, exact(amount), detail, cell.incarnation, 0, units, has_recorded and 1 or 0,
    }
  end
end

-- Units held by other processes stay held: those processes still spend them.
local forget = operations.reset
function operations.reset(policies, costs, at, receipts)
  for i = 1, #policies do policies[i].terms = receipts and receipts[at + i] end
  forget(policies, costs, at, receipts)
end
