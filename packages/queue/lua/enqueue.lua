-- Takes a place for a job in the bounds of its queue, and finds the job that an idempotency key stands for. It adds no job, unless it is given
-- the text of one: else the broker adds it.
--
-- KEYS[1]  places: sorted set of `<identity digest>:<job id>` by the time of enqueueing
-- KEYS[2]  hash of identity digest → places it has
-- KEYS[3]  flow: hash of jobs in and out by second
-- KEYS[4]  expiries: sorted set of the places of jobs that have not begun, by the time when they expire
-- KEYS[5]  record of the idempotency key: `<fingerprint>:<job id>`; not read without one. Beside it stands who is about to add the job
-- KEYS[6]  jobs that are to be delivered: sorted set of `<job id>:<number of the delivery>` by time
-- ARGV[1]  job id            ARGV[2]  identity digest    ARGV[3]  now, ms
-- ARGV[4]  max depth         ARGV[5]  max depth of the identity
-- ARGV[6]  fingerprint, or ''         ARGV[7]  ms that the record is kept    ARGV[8]  ms that the claim to add the job is kept
-- ARGV[9]  when the job expires, or ''
-- ARGV[10] prefix of the keys of jobs
-- ARGV[11] text of the job, or '' where the broker adds the job itself    ARGV[12] the time of this call, ms
-- Returns  { outcome, job id, how many have expired unseen }: 'enqueued', 'known', 'adding' (known, and to be added: nobody has, so far),
--          'mismatch', 'queue' or 'identity' (which bound is reached)
local places, identities, flow, expiries, record = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, identity, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local max_depth, max_of_identity = tonumber(ARGV[4]), tonumber(ARGV[5])
local fingerprint, kept_ms, claim_ms, expires_at = ARGV[6], ARGV[7], ARGV[8], ARGV[9]

local function count_overdue() return redis.call('ZCOUNT', expiries, '-inf', now) end

if fingerprint ~= '' then
  local known = redis.call('GET', record)
  if known then
    local split = string.find(known, ':', 1, true)
    if string.sub(known, 1, split - 1) ~= fingerprint then return { 'mismatch', '' } end
    local first = string.sub(known, split + 1)
    if redis.call('EXISTS', ARGV[10] .. first) == 1 then return { 'known', first } end
    -- The writer of the record has not added the job, or never will: it is added now, under its id.
    id = first
  end
end

local place = identity .. ':' .. id
local depth = redis.call('ZCARD', places)
local is_taken = redis.call('ZSCORE', places, place)
if not is_taken then
  if depth >= max_depth then return { 'queue', '', count_overdue() } end
  local of_identity = tonumber(redis.call('HGET', identities, identity) or '0')
  if of_identity >= max_of_identity then return { 'identity', '', count_overdue() } end
  redis.call('HINCRBY', identities, identity, 1)
end
redis.call('ZADD', places, ARGV[3], place)
if expires_at ~= '' then redis.call('ZADD', expiries, expires_at, place) end
if fingerprint ~= '' then
  redis.call('SET', record, fingerprint .. ':' .. id, 'PX', kept_ms)
  redis.call('SET', record .. ':claim', ARGV[1], 'PX', claim_ms)
end
if ARGV[11] ~= '' then
  redis.call('HSET', ARGV[10] .. id, 'data', ARGV[11], 'delivery', 1, 'deliveredAt', ARGV[12])
  redis.call('ZADD', KEYS[6], ARGV[12], id .. ':1')
end
if is_taken then return { id == ARGV[1] and 'enqueued' or 'adding', id } end
if depth == 0 then redis.call('HSET', flow, 'since', ARGV[3]) end
count_flow(flow, 'i', now)
return { 'enqueued', id }
