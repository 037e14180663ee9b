import { randomInt } from 'node:crypto'
import {
  type Check,
  notify,
  type Outcome,
  SluiceError,
  type Store,
  type StoreOp,
  warnOnce,
} from '@sluice/core'
import { Batcher } from './batcher.ts'
import { decodeReply, encodeCall, type Row } from './call.ts'
import { recogniseClient, type UserClient } from './clients/recognise-client.ts'
import { KeyEncoder } from './key-encoder.ts'
import { type Clock, type RedisStoreOptions, setUpRedisStore } from './redis-store-options.ts'
import { loadScript, runScript } from './script.ts'

/** A store in Redis or Valkey. The client stays its owner's: Sluice neither connects nor closes it. */
export interface RedisStore extends Store {
  apply(op: StoreOp, checks: readonly Check[]): Promise<readonly Outcome[]>
  /** Settles the checks under way and refuses further ones. */
  close(): Promise<void>
}

/** The most keys of one call: a script holds up everybody else while it runs. */
const maxKeysPerCall = 4_000
const maxCallsInFlight = 4
/** How much longer than its last unit a key lives. With a clock that is not Redis' own, a call may arrive late. */
const ttlMarginMs = { server: 1_000, other: 10_000 } as const
const u32 = 2 ** 32

/**
 * Keeps counts in Redis ≥ 6.2 or Valkey, where one Lua script decides many requests atomically.
 * @param client of ioredis or node-redis, as you construct it
 * @example
 * const store = redisStore(new Redis(process.env.REDIS_URL))
 * @throws SluiceError when the client is none that Sluice knows, or an option is out of range
 */
export function redisStore(client: UserClient, options: RedisStoreOptions = {}): RedisStore {
  const redis = recogniseClient(client)
  const { clock, encoding, onInvalid, ...keyOptions } = setUpRedisStore(options)
  const keys = new KeyEncoder({ ...keyOptions, encoding })
  const script = loadScript(encoding)
  const marginMs = clock === 'server' ? ttlMarginMs.server : ttlMarginMs.other
  let callNumber = 0
  let incarnation = randomInt(u32)
  warnAboutGuessableKeys(options)

  async function call(rows: readonly Row[]): Promise<readonly (readonly Outcome[])[]> {
    callNumber += 1
    const thisCall = callNumber
    const { keys: names, policies, rows: packedRows } = encodeCall(rows)
    const args = [
      String(thisCall),
      clockArgument(clock),
      String(marginMs),
      String(incarnation),
      policies,
      packedRows,
    ]
    incarnation = (incarnation + rows.reduce((sum, { checks }) => sum + checks.length, 0)) % u32
    const reply = await runScript(redis, script, { keys: names, args })
    const { outcomes, unreadable } = decodeReply(reply, thisCall, rows)
    if (unreadable > 0) {
      notify(onInvalid, {
        code: 'SLUICE_STATE_UNREADABLE',
        message: `${unreadable} stored values could not be read, and counted as empty`,
      })
    }
    return outcomes
  }

  const batcher = new Batcher<Row, readonly Outcome[]>({
    maxWeight: maxKeysPerCall,
    weightOf: (row) => row.checks.length,
    maxInFlight: maxCallsInFlight,
    send: (rows) => call(rows).catch(rethrow),
  })

  return {
    apply: (op, checks) =>
      batcher.add({ op, checks, keys: checks.map((check) => keys.keyOf(check)) }),
    close: () => batcher.close(),
  }
}

/** '' stands for the server's own clock. */
function clockArgument(clock: Clock): string {
  if (clock === 'server') return ''
  return String(Math.floor(clock === 'client' ? Date.now() : clock()))
}

function rethrow(error: unknown): never {
  if (error instanceof SluiceError) throw error
  const reason = error instanceof Error ? error.message : 'no reason given'
  throw new SluiceError('SLUICE_STORE_FAILED', `Redis did not decide: ${reason}`, { cause: error })
}

function warnAboutGuessableKeys({ secret, digest = true }: RedisStoreOptions): void {
  if (process.env.NODE_ENV !== 'production' || (secret !== undefined && digest)) return
  warnOnce(
    `redisStore has no secret: whoever can read the keys in Redis can guess identities such as IPs; set { secret }`,
  )
}
