-- Extends parts/request.lua for policies with grants (algorithms/granted-log.lua). Receipts are
-- replaced by the terms of each key: { id, lifetime of the grant in ms, divisor of the remaining
-- units, and grants that the process renews or has closed (held_log.close) }; {} for other
-- policies.

-- The report has two more fields: the units granted, and whether units were recorded.
function operations.grant(policies, costs, at, receipts)
  for i = 1, #policies do
    local cell, policy, terms = cells[i], policies[i], receipts[at + i]
    local algorithm, units, has_recorded = policy.algorithm, 0, false
    if algorithm.grant then
      has_recorded = algorithm.close(cell, policy, terms, 4)
      units = algorithm.grant(cell, policy, cost_at(costs, at + i), terms[1], terms[2], terms[3])
      algorithm.write(cell, policy)
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
