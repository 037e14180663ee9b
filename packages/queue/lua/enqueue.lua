-- Finds a place for a job in the bounds of its queue, and the job that an idempotency key stands for.
--
-- KEYS[1]  places: sorted set of `<identity digest>:<job id>` by the time of enqueueing
-- KEYS[2]  hash of identity digest → places it has
-- KEYS[3]  flow: hash of jobs in and out by second
-- KEYS[4]  record of the idempotency key: `<fingerprint>:<job id>`; not read without one
-- ARGV[1]  job id            ARGV[2]  identity digest    ARGV[3]  now, ms
-- ARGV[4]  max depth         ARGV[5]  max depth of the identity
-- ARGV[6]  fingerprint, or ''         ARGV[7]  ms that the record is kept
-- ARGV[8]  prefix of BullMQ's job keys    ARGV[9]  prefix of the marks of cancelled jobs
-- Returns  { outcome, job id }: 'enqueued', 'known', 'mismatch', 'queue' or 'identity' (which bound is reached)
local places, identities, flow, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, identity, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local max_depth, max_of_identity = tonumber(ARGV[4]), tonumber(ARGV[5])
local fingerprint, kept_ms = ARGV[6], ARGV[7]

if fingerprint ~= '' then
  local known = redis.call('GET', record)
  if known then
    local split = string.find(known, ':', 1, true)
    if string.sub(known, 1, split - 1) ~= fingerprint then return { 'mismatch', '' } end
    local first = string.sub(known, split + 1)
    if redis.call('EXISTS', ARGV[8] .. first, ARGV[9] .. first) > 0 then return { 'known', first } end
    -- Whoever wrote the record did not come to add the job: it is added now, under its id.
    id = first
  end
end

local place = identity .. ':' .. id
local depth = redis.call('ZCARD', places)
if not redis.call('ZSCORE', places, place) then
  if depth >= max_depth then return { 'queue', '' } end
  local of_identity = tonumber(redis.call('HGET', identities, identity) or '0')
  if of_identity >= max_of_identity then return { 'identity', '' } end
  redis.call('ZADD', places, ARGV[3], place)
  redis.call('HINCRBY', identities, identity, 1)
end
if fingerprint ~= '' then redis.call('SET', record, fingerprint .. ':' .. id, 'PX', kept_ms) end
if depth == 0 then redis.call('HSET', flow, 'since', ARGV[3]) end
count_flow(flow, 'i', now)
return { 'enqueued', id }
