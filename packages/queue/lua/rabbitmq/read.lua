-- Reads jobs: those with the given ids, or dead letters, the newest first.
--
-- KEYS[1]  dead letters
-- ARGV[1]  prefix of the keys of jobs    ARGV[2]  first dead letter    ARGV[3]  last one    ARGV[4] and on: ids, in place of dead letters
-- Returns  for each job: id, data, returnvalue, failedReason, runs that ended, when it ended, token of its run, and 1 if any began
local ids = {}
for i = 4, #ARGV do ids[#ids + 1] = ARGV[i] end
if #ids == 0 then ids = redis.call('ZREVRANGE', KEYS[1], ARGV[2], ARGV[3]) end
local found = {}
for _, id in ipairs(ids) do
  local fields = { 'data', 'returnvalue', 'failedReason', 'atm', 'finishedOn', 'token', 'sluice:began' }
  local job = redis.call('HMGET', ARGV[1] .. id, unpack(fields))
  if job[1] then
    local row = { id }
    for i = 1, #fields do row[i + 1] = job[i] or '' end
    found[#found + 1] = row
  end
end
return found
