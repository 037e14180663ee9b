import {
  type AlgorithmName,
  algorithmNames,
  type Decision,
  type InvalidEvent,
  type Peeked,
  type StoreErrorEvent,
} from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { note, replayed, times } from '../evidence/figures.ts'
import { algorithmPolicy } from '../stores/algorithm-policy.ts'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { scaled } from '../support/scale.ts'
import type { Drawn } from '../support/weighted.ts'

const { client } = await redisOfFile()

let opened = 0
let now = 1_795_195_800_000
const windowMs = 60_000

const penalty = { name: 'bans', after: 4, within: '1h', for: '1m', max: '2m' } as const

/** Every way in which a key is stored. */
const forms: readonly (readonly [name: string, options: SomeOptions, store: RedisStoreOptions])[] =
  [
    ...algorithmNames
      .filter((name) => name !== 'sliding-log')
      .map((algorithm) => form(algorithm, algorithm, 5)),
    form('fixed-window, aligned', 'fixed-window', 5, { align: 'clock' }),
    form('sliding-log, a string', 'sliding-log', 20),
    form('sliding-log, a string with long offsets', 'sliding-log', 20, { window: '30d' }),
    form('sliding-log, a list of blocks', 'sliding-log', 200),
    form('sliding-log, a list of wide blocks', 'sliding-log', 10_000_000),
    form('sliding-log, a sorted set', 'sliding-log', 20, {}, { encoding: 'sorted-set' }),
    ['penalty', { policies: [{ limit: 1, window: '1m' }], penalty }, {}],
  ]

function form(
  name: string,
  algorithm: AlgorithmName,
  limit: number,
  more: { window?: '30d'; align?: 'clock' } = {},
  store: RedisStoreOptions = {},
): readonly [string, SomeOptions, RedisStoreOptions] {
  const policy = algorithmPolicy(algorithm, { limit, window: windowMs, ...more })
  return [name, { policies: [policy] }, store]
}

function limitOf({ policies }: SomeOptions): number {
  return Number(policies?.[0]?.limit)
}

function open(options: SomeOptions, storeOptions: RedisStoreOptions) {
  opened += 1
  const prefix = `garbage${opened}`
  const invalid: InvalidEvent[] = []
  const errors: StoreErrorEvent[] = []
  const store = redisStore(client, {
    ...{ prefix, digest: false, clock: () => now, denialTtlMs: 0, heartbeatMs: 0 },
    observers: { onInvalid: (event) => void invalid.push(event) },
    ...storeOptions,
  })
  const observers = { onStoreError: (event: StoreErrorEvent) => void errors.push(event) }
  const limiter = patientLimiter({ store, ...options, observers })
  const isPenalty = options.penalty !== undefined
  return {
    limiter,
    invalid,
    errors,
    /** The key of the identity `k` that is planted. */
    keyOf: async () => {
      const keys = await client.keys(`${prefix}:*:k`)
      const key = keys.find((name) => name.includes('~penalty') === isPenalty)
      if (key === undefined) throw new Error('nothing is stored')
      return key
    },
  }
}

/** Bytes where others were. */
const change = fc.record({
  kind: fc.constantFrom('cut', 'grow', 'flip', 'flip', 'random', 'keep-version', 'nothing'),
  at: fc.nat(10_000),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
})

function changed(value: Buffer, { kind, at, bytes }: Drawn<typeof change>): Buffer {
  if (kind === 'cut') return value.subarray(0, at % Math.max(1, value.length))
  if (kind === 'grow') return Buffer.concat([value, bytes])
  if (kind === 'random') return Buffer.from(bytes)
  const copy = Buffer.from(value)
  if (kind === 'flip') {
    for (const [index, byte] of bytes.subarray(0, 3).entries()) {
      const place = (at * (index + 1)) % Math.max(1, copy.length)
      copy[place] = (copy[place] ?? 0) ^ (1 << (byte % 8))
    }
  }
  // The version, and so the length, as they should be.
  if (kind === 'keep-version')
    for (let i = 1; i < copy.length; i += 1) copy[i] = bytes[i % bytes.length] ?? 0
  return copy
}

const score = fc.oneof(
  fc.constantFrom(
    ...['0', '-1', '-5', '1', '0.5', '-0.5', '-inf', 'inf', '1e300', '-1e300', '-9007199254740993'],
  ),
  fc.integer({ min: -2 * windowMs, max: 2 * windowMs }).map((ms) => String(now + ms)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => String(number)),
)
const member = fc.oneof(
  fc.constantFrom(
    ...['foreign', '#', '', '1:1', '7:-1', '7:x'],
    ...['9:99999999999999999999', '0000000000:1:x', '99999999999:1:1'],
  ),
  fc.string(),
)

const garbage = fc.record({
  kind: fc.constantFrom('replace', 'change', 'change', 'change', 'add', 'remove'),
  type: fc.constantFrom('string', 'list', 'set', 'hash', 'zset', 'stream'),
  changes: fc.array(change, { minLength: 1, maxLength: 3 }),
  members: fc.array(fc.tuple(score, member), { minLength: 1, maxLength: 4 }),
})

type Garbage = Drawn<typeof garbage>

async function replace(
  key: string,
  { type, changes, members }: Omit<Garbage, 'kind'>,
): Promise<void> {
  const bytes = Buffer.from(changes[0]?.bytes ?? [])
  await client.del(key)
  if (type === 'string') await client.set(key, bytes)
  if (type === 'list') await client.rpush(key, bytes, ...members.map(([, name]) => name))
  if (type === 'set') await client.sadd(key, bytes)
  if (type === 'hash') await client.hset(key, 'field', bytes)
  if (type === 'stream') await client.xadd(key, '*', 'field', bytes)
  if (type === 'zset') for (const [at, name] of members) await client.zadd(key, at, name)
}

/** Spoils what a key holds; whether it now holds another type than it should. */
async function plant(key: string, planted: Garbage): Promise<void> {
  const { kind, changes, members } = planted
  const [first] = changes
  const type = await client.type(key)
  if (kind === 'replace' || !first) return replace(key, planted)
  if (type === 'string') {
    const value = (await client.getBuffer(key)) ?? Buffer.alloc(0)
    const spoilt = changes.reduce(changed, value)
    await client.set(key, spoilt, 'KEEPTTL')
    return
  }
  if (type === 'list') {
    const blocks = await client.lrangeBuffer(key, 0, -1)
    for (const each of changes) {
      const index = each.at % blocks.length
      if (kind === 'add') blocks.splice(index, 0, Buffer.from(each.bytes))
      if (kind === 'remove' && blocks.length > 1) blocks.splice(index, 1)
      if (kind === 'change') blocks[index] = changed(blocks[index] ?? Buffer.alloc(0), each)
    }
    await client.del(key)
    await client.rpush(key, ...blocks)
    return
  }
  if (kind === 'remove') {
    const names = await client.zrangeBuffer(key, '0', '-1')
    const name = names[first.at % names.length]
    if (name) await client.zrem(key, name)
    return
  }
  for (const [at, name] of members) await client.zadd(key, at, name)
}

function expectSane({ outcomes, allowed, retryAfterMs, source }: Decision | Peeked): void {
  expect(source).toBe('store')
  expect(allowed).toBe(retryAfterMs === 0)
  for (const outcome of outcomes) {
    expect(outcome.allowed).toBe(outcome.retryAfterMs === 0)
    expect(outcome.retryAfterMs).toBeGreaterThanOrEqual(0)
    expect(outcome.remaining).toBeGreaterThanOrEqual(0)
    expect(outcome.remaining).toBeLessThanOrEqual(outcome.limit ?? Number.NaN)
    if (outcome.resetMs !== undefined) expect(outcome.resetMs).toBeGreaterThanOrEqual(0)
  }
}

const steps = fc.array(
  fc.record({
    elapsedMs: fc.constantFrom(0, 0, 1, 700, windowMs / 2, windowMs),
    what: fc.constantFrom(
      ...(['consume', 'consume', 'consume', 'peek', 'charge', 'reset'] as const),
      ...(['refund', 'release', 'renew'] as const),
    ),
    cost: fc.constantFrom(1, 1, 1, 2, 5, 20),
  }),
  { minLength: 1, maxLength: 12 },
)

const scenario = fc.record({ seeds: fc.nat(30), garbage, steps })

describe.each(forms)('%s', (_name, options, storeOptions) => {
  it('decides whatever its key holds, and hurts no other', {
    timeout: 120_000 * times,
  }, async ({ task }) => {
    const inputs = Math.ceil(scaled(10, 60) * times)
    await fc.assert(
      fc.asyncProperty(scenario, async ({ seeds, garbage: planted, steps: trace }) => {
        const { limiter, errors, keyOf } = open(options, storeOptions)
        const decisions: Decision[] = []
        for (let i = 0; i <= seeds; i += 1) {
          now += 3
          decisions.push(await limiter.consume('k'))
        }
        if (options.penalty) await limiter.consume('k')
        await plant(await keyOf(), planted)
        let others = 0
        for (const { elapsedMs, what, cost } of trace) {
          now += elapsedMs
          others += 1
          const other = limiter.consume(`other${others}`)
          const last = decisions.at(-1)
          if (what === 'consume') decisions.push(await limiter.consume('k', { cost }))
          else if (what === 'peek') expectSane(await limiter.peek('k', { cost }))
          else if (what === 'charge') decisions.push(await limiter.charge('k', { cost }))
          else if (what === 'reset') await limiter.reset('k')
          else if (last) await limiter[what](last)
          for (const decision of decisions.slice(-1)) expectSane(decision)
          const first = await other
          expectSane(first)
          expect(first.allowed).toBe(true)
          expect(errors).toEqual([])
        }
        await limiter.reset('k')
        const fresh = await limiter.consume('k')
        expect(fresh.allowed).toBe(true)
        expect(fresh.outcomes[0]?.remaining).toBe(limitOf(options) - 1)
        expect(await client.pttl(await keyOf().catch(() => 'none'))).not.toBe(-1)
        expect(errors).toEqual([])
        await limiter.close()
      }),
      { numRuns: inputs, ...replayed },
    )
    note(task, { inputs })
  })

  it('lives as long as it counts; another type or length counts as empty, and is reported', async () => {
    const { limiter, invalid, errors, keyOf } = open(options, storeOptions)
    for (const type of ['string', 'list', 'set', 'hash', 'zset', 'stream'] as const) {
      await limiter.reset('k')
      now += 10 * windowMs
      await limiter.consume('k', { cost: limitOf(options) })
      const { retryAfterMs } = await limiter.consume('k', { cost: limitOf(options) })
      // By the clock of a caller, keys live 10 s longer: half of that is for a busy machine.
      expect(await client.pttl(await keyOf())).toBeGreaterThan(retryAfterMs + 5_000)
      const nothing = { kind: 'nothing', at: 0, bytes: new Uint8Array(1_000).fill(7) } as const
      await replace(await keyOf(), { type, changes: [nothing], members: [['5', 'foreign']] })
      now += 10 * windowMs
      invalid.length = 0
      const decision = await limiter.consume('k')
      expect(decision).toMatchObject({ allowed: true, source: 'store' })
      expect(decision.outcomes[0]?.remaining).toBe(limitOf(options) - 1)
      expect(invalid, type).toMatchObject([{ code: 'SLUICE_STATE_UNREADABLE' }])
    }
    expect(errors).toEqual([])
  })
})
