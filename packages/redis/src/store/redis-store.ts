import {
  type Ask,
  type Cancellation,
  type ForgetOptions,
  type GrantCheck,
  type Granted,
  joined,
  notify,
  type Outcome,
  type Policy,
  processWide,
  type Store,
  type StoreCall,
} from '@sluice/core'
import { boundLogLimit, checkLogLimit } from '@sluice/core/backend'
import { CallEncoder, type CallTerms, type PlannedRequests } from '../calls/call-encoder.ts'
import {
  type Call,
  CallQueue,
  notSentInTime,
  splitByPlan,
  storeClosed,
} from '../calls/call-queue.ts'
import { connectionOf } from '../clients/client-connection.ts'
import { hasKeyPrefix, recogniseClient, type UserClient } from '../clients/recognise-client.ts'
import type { RedisClient } from '../clients/redis-client.ts'
import { queueByHashTag } from '../cluster/ask-queues.ts'
import { type AskRedis, askAcrossMigration } from '../cluster/migrating-slots.ts'
import { redisDocuments } from '../fleet/documents.ts'
import { Fleet } from '../fleet/fleet.ts'
import { forgetKeys } from '../fleet/forget-policy.ts'
import { hashTags } from '../keys/hash-tags.ts'
import { grantsKey, KeyEncoder } from '../keys/key-encoder.ts'
import {
  PromisedRequest,
  type QueuedCheck,
  type QueuedOutcome,
  type QueuedRequest,
} from '../model/queued-request.ts'
import { type AskResult, passOn, ReplyReader, textOf } from '../replies/reply.ts'
import { lastFailure, storeFailure } from '../replies/store-failure.ts'
import { ScriptRunner, scriptsOf } from '../scripts/script-runner.ts'
import { Scripts } from '../scripts/scripts.ts'
import { sendInTime } from '../scripts/send-in-time.ts'
import { type RedisStoreOptions, setUpRedisStore } from './redis-store-options.ts'

/** A store in Redis or Valkey. You own the client: Sluice neither connects nor closes it. */
export interface RedisStore extends Store {
  apply(...request: Parameters<Store['apply']>): Promise<readonly Outcome[]>
  change(...change: Parameters<Store['change']>): Promise<readonly boolean[]>
  submit(ask: Ask): void
  /** Rejects new checks, and waits up to a second for pending ones. */
  close(): Promise<void>
}

const fleets = processWide(
  '@sluice/redis/fleets/2',
  () => new WeakMap<object, Map<string, WeakRef<Fleet>>>(),
)

/**
 * Keeps counts in Redis ≥ 6.2 or Valkey, where one Lua script decides many requests atomically. On
 * a Cluster, only the policies of one identity are decided together. A request whose policies count
 * different identities is decided shard by shard. If a shard denies, the units already taken are
 * given back.
 * @param client an ioredis or node-redis client, for a single node, Sentinel or Cluster
 * @example
 * const store = redisStore(new Redis(process.env.REDIS_URL))
 * @throws SluiceError if the client is unknown or an option is out of range
 */
export function redisStore(client: UserClient, options: RedisStoreOptions = {}): RedisStore {
  const redis = recogniseClient(client)
  const setup = setUpRedisStore(options)
  const { clock, encoding, batch, denialTtlMs, heartbeatMs, observers } = setup
  const onInvalid = joined(observers.map((each) => each.onInvalid?.bind(each)))
  const sharedPrefix = `${setup.prefix}:{${hashTags[0]}}`
  const fleet = fleetOf(client, redis, sharedPrefix)
  let hasJoined = false
  const unobserve: (() => void)[] = []
  let tellOfCall: ((call: StoreCall) => void) | undefined
  const keys = new KeyEncoder(setup)
  const isServerClock = clock === 'server'
  const scripts = new Scripts(encoding)
  const replies = new ReplyReader()
  const connection = connectionOf(client)
  const nowMs = typeof clock === 'function' ? () => Math.floor(clock()) : () => fleet.now()
  const senderPrefix = redis.sendsAgain ? `${sharedPrefix}:sender:` : undefined
  const calls = new CallEncoder({ scripts, encoding, isServerClock, nowMs, senderPrefix })
  const runScript = scriptsOf(redis, clock !== 'client')
  const { documents, shareReport } = redisDocuments(redis, {
    run: runScript,
    nowMs: () => (clock === 'client' ? fleet.now() : undefined),
    prefix: sharedPrefix,
  })

  function openQueue(): CallQueue {
    // Each node of a Cluster loads scripts separately.
    const runner = new ScriptRunner(redis)

    const askLater: AskRedis = async (call, terms = {}) => {
      const { asks } = call
      if (clock === 'client') await fleet.clockAsked()
      while (runner.isLoading) await runner.loaded()
      if (asks.every(({ isUnwanted }) => isUnwanted)) throw notSentInTime()
      const [{ control, keys: [key = ''] = [] } = {}] = asks
      if (!control || clock === 'client') return askNow(call, terms)
      return sendInTime(redis, { key, control }, (untilMs) => askNow(call, { ...terms, untilMs }))
    }

    const askRedis: AskRedis = (call, terms = {}) => {
      const mustWait = runner.isLoading || clock === 'client' || call.asks[0]?.control
      return mustWait ? askLater(call, terms) : askNow(call, terms)
    }

    function askNow(call: PlannedRequests, terms: CallTerms): Promise<readonly AskResult[]> {
      const { script, args, echo } = calls.encode(call, calls.nextId(), terms)
      return runner.run(script, args, (reply) => {
        connection.last = undefined
        const results = replies.read(reply, echo, call.asks)
        const { unreadable } = replies
        if (unreadable > 0) {
          notify(onInvalid, {
            code: 'SLUICE_STATE_UNREADABLE',
            message: `${unreadable} stored values could not be read and counted as empty`,
          })
        }
        return results
      })
    }

    async function heldUnits(key: string): Promise<string> {
      while (runner.isLoading) await runner.loaded()
      const script = scripts.heldUnits
      return runner.run(script, [script.sha1, '1', grantsKey(key)], textOf)
    }

    const ask = redis.isCluster ? askAcrossMigration(askRedis, heldUnits) : askRedis
    return new CallQueue({
      ...batch,
      split: (asks) => splitByPlan(asks, calls),
      async send(call, onEnd) {
        const { asks } = call
        let failed = false
        try {
          passOn(await ask(call), asks)
        } catch (error) {
          failed = true
          const failure = storeFailure(error, connection.last)
          for (const one of asks) one.fail(failure)
        } finally {
          tellOfCall?.(storeCall(call, failed))
          onEnd(call)
        }
      },
    })
  }

  const queues = redis.isCluster ? queueByHashTag(openQueue) : openQueue()

  function submit(ask: QueuedRequest): void {
    if (!hasJoined && !queues.isClosed) {
      hasJoined = true
      fleet.join(heartbeatMs)
    }
    if (encoding !== 'packed') ask.checks = ask.checks.map(boundLogLimit)
    ask.keys = keys.keysOf(ask.checks)
    queues.submit(ask)
  }

  function request(
    op: QueuedRequest['op'],
    checks: readonly QueuedCheck[],
    cancellation?: Cancellation,
  ): Promise<readonly QueuedOutcome[]> {
    if (clock !== 'client') cancellation?.control?.promise()
    const promised = new PromisedRequest({ op, checks, keys: [] }, cancellation)
    submit(promised)
    return promised.outcomes
  }

  return {
    space: fleet,
    documents,
    scripts: { run: runScript },
    denials: { ttlMs: denialTtlMs, clock: typeof clock === 'function' ? clock : undefined },
    name: 'redis',
    keys: {
      digestOf: (key) => keys.digestOf(key),
      ...(setup.digest ? { keyFor: (digest: string) => ({ key: digest, digest }) } : {}),
      // SCAN returns names with the prefix, and the client would add it again.
      ...(hasKeyPrefix(client)
        ? {}
        : {
            forgetPolicy(policy: Policy, options: ForgetOptions) {
              if (clock !== 'client') options.control?.promise()
              return forgetKeys(redis, { run: runScript, pattern: keys.patternOf(policy) }, options)
            },
          }),
    },
    telemetry: {
      get lastFailure() {
        return connection.last && lastFailure(connection.last)
      },
      observeCalls(observer) {
        tellOfCall = joined([tellOfCall, observer])
      },
      observe(observer) {
        unobserve.push(fleet.observe(observer))
      },
      observeReturn(observer) {
        connection.observers.add(observer)
        unobserve.push(() => connection.observers.delete(observer))
      },
    },
    fleet: {
      get instances() {
        return fleet.instances
      },
      get clockSkewMs() {
        return fleet.skewMs
      },
      async shareReport(report) {
        if (queues.isClosed) throw storeClosed()
        return shareReport(report)
      },
    },

    accept(policies) {
      if (encoding === 'packed') return
      const fix = "use the encoding 'packed', or another algorithm"
      for (const policy of policies) checkLogLimit(policy, fix)
    },

    apply: request,

    async change({ op, checks }, cancellation) {
      const queued =
        op === 'block' ? checks.map(({ blockMs, ...rest }) => ({ ...rest, cost: blockMs })) : checks
      const outcomes = await request(op, queued, cancellation)
      return outcomes.map(({ allowed }) => allowed)
    },

    ...(encoding === 'packed' && {
      async grant(checks: readonly GrantCheck[]): Promise<readonly Granted[]> {
        const outcomes = await request('grant', checks)
        return outcomes.map(({ granted: units = 0, remaining, resetMs, receipt: settled }) => {
          return { units, remaining, resetMs, settled }
        })
      },
    }),

    submit,

    async close() {
      await queues.close()
      if (hasJoined) fleet.leave()
      hasJoined = false
      for (const end of unobserve.splice(0)) end()
    },
  }
}

function storeCall({ asks, sentAt }: Call, failed: boolean): StoreCall {
  const checks = asks.reduce((sum, ask) => sum + ask.checks.length, 0)
  const durationMs = performance.now() - sentAt
  const startedAt = Math.round(Date.now() - durationMs)
  return { requests: asks.length, checks, startedAt, durationMs, failed }
}

/** Returns the fleet of a prefix, shared by all stores of this process that write the same keys. */
function fleetOf(client: object, redis: RedisClient, sharedPrefix: string): Fleet {
  const known = fleets.get(client) ?? new Map<string, WeakRef<Fleet>>()
  fleets.set(client, known)
  const fleet = known.get(sharedPrefix)?.deref() ?? new Fleet(redis, `${sharedPrefix}:instances`)
  // Weak, so that the last store of a prefix takes along all that its fleet keeps alive.
  known.set(sharedPrefix, new WeakRef(fleet))
  return fleet
}
