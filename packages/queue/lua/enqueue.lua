-- Takes a place for a job within the bounds of its queue, and finds the job of an idempotency key. Adds the job only if its text is passed:
-- otherwise the broker adds it.
--
-- args.maxDepth and args.maxDepthPerIdentity  the bounds    args.claimMs  ms to keep the claim to add the job
-- Returns  { outcome, job id, number of expired jobs not yet removed }: 'enqueued', 'known', 'adding' (known, but not added yet),
--          'mismatch', or the bound reached: 'queue' or 'identity'
local claim = id
if job.record then
  local known = redis.call('GET', record)
  if known then
    local first = id_in(known)
    if string.sub(known, 1, -#first - 2) ~= job.fingerprint then return { 'mismatch', '' } end
    if redis.call('EXISTS', prefix .. first) == 1 then return { 'known', first } end
    -- The writer of the record has not added the job yet, or never will: it is added now, with its id.
    id = first
    place = job.identity .. ':' .. id
  end
end

local depth = redis.call('ZCARD', places)
local is_taken = redis.call('ZSCORE', places, place)
if not is_taken then
  local function full(bound) return { bound, '', redis.call('ZCOUNT', expiries, '-inf', job.enqueuedAt) } end
  if depth >= args.maxDepth then return full('queue') end
  if tonumber(redis.call('HGET', identities, job.identity) or '0') >= args.maxDepthPerIdentity then return full('identity') end
  redis.call('HINCRBY', identities, job.identity, 1)
end
redis.call('ZADD', places, job.enqueuedAt, place)
if job.expiresAt then redis.call('ZADD', expiries, job.expiresAt, place) end
if job.record then
  redis.call('SET', record, job.fingerprint .. ':' .. id, 'PX', job.openMs)
  redis.call('SET', record .. ':claim', claim, 'PX', args.claimMs)
end
if text ~= '' then
  redis.call('HSET', prefix .. id, 'data', text, 'delivery', 1, 'deliveredAt', now)
  redis.call('ZADD', unpublished, now, id .. ':1')
end
if is_taken then return { id == claim and 'enqueued' or 'adding', id } end
if depth == 0 then redis.call('HSET', flow, 'since', job.enqueuedAt) end
now = job.enqueuedAt
count_flow('i')
return { 'enqueued', id }
