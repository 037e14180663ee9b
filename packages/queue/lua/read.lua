-- Reads jobs: the one with the id args.only, or dead letters, the newest first, from args.first to args.last.
--
-- Returns  for each: id, data, returnvalue, failedReason, number of ended runs, end time, 1 if any started, and 1 if it is running
local ids = args.only and { args.only } or redis.call('ZREVRANGE', prefix .. 'failed', args.first, args.last)
local found = {}
for _, each in ipairs(ids) do
  local fields = { 'data', 'returnvalue', 'failedReason', 'atm', 'finishedOn', 'sluice:began' }
  local values = redis.call('HMGET', prefix .. each, unpack(fields))
  if values[1] then
    local row = { each }
    for i = 1, #fields do row[i + 1] = values[i] or '' end
    row[#row + 1] = is_running(each) and 1 or 0
    found[#found + 1] = row
  end
end
return found
