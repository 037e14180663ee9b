import { randomInt } from 'node:crypto'
import {
  type Asker,
  type Check,
  type MaybePromise,
  notify,
  type Outcome,
  processWide,
  SluiceError,
  type Store,
  type StoreOp,
  warnOnce,
} from '@sluice/core'
import { Batcher } from './batcher.ts'
import { type Answer, decodeReply, encodeCall } from './call.ts'
import { clientErrors } from './client-errors.ts'
import { recogniseClient, type UserClient } from './clients/recognise-client.ts'
import type { RedisClient } from './clients/redis-client.ts'
import { Denials } from './denials.ts'
import { Fleet } from './fleet.ts'
import { KeyEncoder } from './key-encoder.ts'
import { laneByTag, oneLane } from './lanes.ts'
import { overMovingSlots } from './moving-slots.ts'
import {
  maxSortedSetLimit,
  type RedisStoreOptions,
  setUpRedisStore,
} from './redis-store-options.ts'
import type { Row } from './row-groups.ts'
import { loadScript, runScript } from './script.ts'
import { lastFailure, storeFailure } from './store-failure.ts'
import { tags } from './tags.ts'

/** A store in Redis or Valkey. The client stays its owner's: Sluice neither connects nor closes it. */
export interface RedisStore extends Store {
  /** Synchronous for requests whose denial is still known. */
  apply(op: StoreOp, checks: readonly Check[], asker?: Asker): MaybePromise<readonly Outcome[]>
  /** Settles the checks under way, as far as Redis answers within a second, and refuses further ones. */
  close(): Promise<void>
}

/** How much longer than its last unit a key lives. With a clock that is not Redis' own, a call may arrive late. */
const ttlMarginMs = { server: 1_000, other: 10_000 } as const
const u32 = 2 ** 32

/** What the stores of this process have in common that write the same keys. */
interface Space {
  readonly fleet: Fleet
}

const spaces = processWide(
  '@sluice/redis/spaces/1',
  () => new WeakMap<object, Map<string, Space>>(),
)

/**
 * Keeps counts in Redis ≥ 6.2 or Valkey, where one Lua script decides many requests atomically. On a Cluster that holds for what one identity
 * takes: a request whose policies count different identities is decided shard by shard, and what it took is given back when one denies.
 * @param client of ioredis or node-redis, as you construct it: for a single node, Sentinel or Cluster
 * @example
 * const store = redisStore(new Redis(process.env.REDIS_URL))
 * @throws SluiceError when the client is none that Sluice knows, or an option is out of range
 */
export function redisStore(client: UserClient, options: RedisStoreOptions = {}): RedisStore {
  const redis = recogniseClient(client)
  const { clock, encoding, batch, denialTtlMs, heartbeatMs, onInvalid, ...keyOptions } =
    setUpRedisStore(options)
  const space = spaceOf(client, redis, keyOptions.prefix)
  const { fleet } = space
  let hasJoined = false
  const unobserve: (() => void)[] = []
  const keys = new KeyEncoder({ ...keyOptions, encoding })
  const script = loadScript(encoding)
  const ttlMargin = clock === 'server' ? ttlMarginMs.server : ttlMarginMs.other
  const denials = new Denials(
    denialTtlMs,
    typeof clock === 'function' ? clock : monotonicMs,
    // Who asks next finds out how Redis is; strikes that are lost make a block come later.
    (row) => void lanes.apply(row).catch(() => undefined),
  )
  let callNumber = 0
  let incarnation = randomInt(u32)
  warnAboutGuessableKeys(options)
  const errors = clientErrors(client)

  async function call(rows: readonly Row[]): Promise<readonly Answer[]> {
    callNumber += 1
    const number = callNumber
    if (clock === 'client') await fleet.clockAsked()
    const now =
      clock === 'server' ? undefined : clock === 'client' ? fleet.now() : Math.floor(clock())
    const encoded = encodeCall(rows, {
      number,
      now,
      isServerClock: clock === 'server',
      ttlMargin,
      incarnation,
    })
    incarnation = (incarnation + 4 * encoded.keys.length) % u32
    const reply = await runScript(redis, script, { keys: encoded.keys, args: [encoded.json] })
    errors.clear()
    const { answers, unreadable } = decodeReply(reply, number, encoded.groups)
    if (unreadable > 0) {
      notify(onInvalid, {
        code: 'SLUICE_STATE_UNREADABLE',
        message: `${unreadable} stored values could not be read, and counted as empty`,
      })
    }
    return answers
  }

  async function send(rows: readonly Row[]): Promise<readonly Answer[]> {
    const sent = rows.map((row) => denials.send(row))
    const answers = await call(rows)
    for (const [index, row] of rows.entries()) {
      const before = sent[index]
      const answer = answers[index]
      if (before && answer && !(answer instanceof SluiceError)) denials.learn(row, answer, before)
    }
    return answers
  }

  function openLane(): Batcher<Row, readonly Outcome[]> {
    const sendBatch = redis.isCluster ? overMovingSlots(send) : send
    return new Batcher({
      maxWeights: [batch.maxKeys, batch.maxBytes],
      weigh: ({ keys: names }, measure) => (measure === 0 ? names.length : bytesOf(names)),
      maxInFlight: batch.maxInFlight,
      isWanted: ({ asker }) => !asker?.answered,
      send: (rows) =>
        sendBatch(rows).catch((error: unknown) => {
          throw storeFailure(error, errors.last)
        }),
    })
  }

  /** A limit of a function is known only when it is asked; a smaller one never opens the gate. */
  function bounded(check: Check): Check {
    const { policy, limit } = check
    if (policy.algorithm !== 'sliding-log' || limit <= maxSortedSetLimit) return check
    return { ...check, limit: maxSortedSetLimit }
  }

  const lanes = redis.isCluster ? laneByTag(openLane) : oneLane(openLane)

  return {
    space,
    ...(encoding === 'sorted-set' ? { maxLogLimit: maxSortedSetLimit } : {}),
    observe(observer) {
      unobserve.push(fleet.observe(observer))
    },
    get lastFailure() {
      return errors.last && lastFailure(errors.last)
    },
    get instances() {
      return fleet.instances ?? 1
    },

    apply(op, asked, asker) {
      const checks = encoding === 'sorted-set' ? asked.map(bounded) : asked
      if (!hasJoined && !lanes.isClosed) {
        hasJoined = true
        fleet.join(heartbeatMs)
      }
      const row = { op, checks, keys: checks.map((check) => keys.keyOf(check)), asker }
      return (lanes.isClosed ? undefined : denials.answer(row)) ?? lanes.apply(row)
    },

    async close() {
      denials.settle()
      await lanes.close()
      if (hasJoined) fleet.leave()
      hasJoined = false
      for (const end of unobserve.splice(0)) end()
    },
  }
}

function monotonicMs(): number {
  return performance.now()
}

function bytesOf(keys: readonly string[]): number {
  let bytes = 0
  for (const key of keys) bytes += key.length
  return bytes
}

function spaceOf(client: object, redis: RedisClient, prefix: string): Space {
  const prefixes = spaces.get(client) ?? new Map<string, Space>()
  spaces.set(client, prefixes)
  const known = prefixes.get(prefix)
  if (known) return known
  const space = { fleet: new Fleet(redis, `${prefix}:{${tags[0]}}:instances`) }
  prefixes.set(prefix, space)
  return space
}

function warnAboutGuessableKeys({ secret, digest = true }: RedisStoreOptions): void {
  if (process.env.NODE_ENV !== 'production' || (secret !== undefined && digest)) return
  warnOnce(
    `redisStore has no secret: whoever can read the keys in Redis can guess identities such as IPs; set { secret }`,
  )
}
