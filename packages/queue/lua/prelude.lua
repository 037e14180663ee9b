-- Starts each script of a queue. All keys of a queue are in the slot of KEYS[1].
--
-- KEYS[1]  places: sorted set of `<identity digest>:<job id>` by enqueue time
-- ARGV[1]  prefix of the keys of the queue    ARGV[2]  arguments, as JSON    ARGV[3]  a string to write, or ''
--
-- Each script has `args.now`: the time of the call, in ms. `args.job` has the id, the digest of the identity, and times: `enqueuedAt`,
-- `expiresAt`, `retentionMs` and `openMs`, how long its idempotency record is kept while the job is open. With an idempotency key it has
-- `record`, the digest of the key, and `fingerprint`. `args.token` marks a job as taken by a run.
local places, prefix, args, text = KEYS[1], ARGV[1], cjson.decode(ARGV[2]), ARGV[3]
local job, now = args.job or {}, args.now

local identities = prefix .. 'sluice:identities'   -- hash of identity digest → number of its places
local expiries = prefix .. 'sluice:expiries'       -- places of jobs that have not started, by expiry
local flow = prefix .. 'sluice:flow'               -- hash of jobs in and out by second
local unpublished = prefix .. 'sluice:unpublished' -- RabbitMQ: `<job id>:<number of the message>` by publish time

local id = job.id or ''
local key, place = prefix .. id, (job.identity or '') .. ':' .. id
local record = prefix .. 'sluice:idempotency:' .. (job.record or '')   -- `<fingerprint>:<job id>`
local says = (job.fingerprint or '') .. ':' .. id
local flag = prefix .. 'sluice:stop:' .. id                           -- exists while the job must stop
