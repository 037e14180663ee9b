import {
  type DecidingOp,
  definePolicy,
  type GrantCheck,
  type Granted,
  type Outcome,
  type Receipt,
  type Store,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AnyCheck, type AnyOp, changeOf } from '../support/store-through.ts'
import { type Drawn, weighted } from '../support/weighted.ts'
import {
  mapDriver,
  memoryDriver,
  type OpenedStore,
  packedDriver,
  runsOf,
  serverOf,
} from './store-drivers.ts'

/** Operations on keys of a policy with grants, and sometimes on one without. */
const traces = fc
  .record({
    window: fc.constantFrom(100, 1_000, 60_000, 86_400_000),
    limit: fc.constantFrom(1, 3, 10, 50, 200, 1_000),
    lifeShare: fc.constantFrom(10, 20, 50),
    resolution: fc.constantFrom(1, 1, 1, 7),
  })
  .chain(({ window, limit, lifeShare, resolution }) => {
    const lifeMs = Math.max(10, Math.floor(window / lifeShare))
    const step = fc.record({
      op: fc.constantFrom<AnyOp>(
        ...(['consume', 'consume', 'grant', 'grant', 'grant', 'peek', 'charge'] as const),
        ...(['refund', 'reset'] as const),
      ),
      elapsedMs: weighted(
        [4, fc.constantFrom(0, 1, lifeMs - 1, lifeMs, lifeMs + 1)],
        [3, fc.nat(lifeMs)],
        [1, fc.constantFrom(window - lifeMs, window, window + lifeMs)],
      ),
      key: fc.constantFrom('a', 'a', 'b'),
      cost: fc.oneof(fc.constant(1), fc.nat(limit + 1)),
      limit: weighted(
        [8, fc.constant(limit)],
        [1, fc.nat(2 * limit)],
        // A log that is written as one string.
        [1, fc.constant(100)],
      ),
      divisor: fc.constantFrom(1, 2, 4),
      // How many of the open grants are closed, and the share that was spent.
      closes: fc.nat(2),
      spentShare: fc.constantFrom(0, 0.5, 1),
      // How many further grants are renewed, and the share of their units that is left.
      keeps: fc.nat(2),
      leftShare: fc.constantFrom(0, 0.3, 1),
      // Whether the holder does not learn that a grant was renewed: the next call is as a late one.
      isLate: fc.boolean(),
      // For a refund: which receipt so far, modulo their number.
      settles: fc.nat(),
      isBesideAnother: fc.constantFrom(false, false, true),
    })
    return fc.record({
      window: fc.constant(window),
      limit: fc.constant(limit),
      resolution: fc.constant(resolution),
      lifeMs: fc.constant(lifeMs),
      steps: fc.array(step, { minLength: 1, maxLength: 40 }),
    })
  })

interface OpenGrant {
  readonly id: number
  readonly key: string
  units: number
}

describe.each([memoryDriver, mapDriver])('grants in Redis and in: $name', (driver) => {
  const memory = serverOf(driver)
  const redis = serverOf(packedDriver)

  it('are decided identically, and no key outlives its units', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(traces, async (trace) => {
        let now = 1_795_195_800_000
        const inMemory = await memory.open(() => now)
        const inRedis = await redis.open(() => now)
        try {
          await compare(trace, inMemory, inRedis, (elapsedMs) => {
            now += elapsedMs
          })
        } finally {
          await inRedis.close()
          await inMemory.close()
        }
      }),
      { numRuns: runsOf(packedDriver, { memory: 0, server: 240 }) },
    )
  })
})

async function compare(
  { window, limit, resolution, lifeMs, steps }: Drawn<typeof traces>,
  inMemory: OpenedStore,
  inRedis: OpenedStore,
  elapse: (ms: number) => void,
): Promise<void> {
  const policy = definePolicy(
    { name: 'hot', limit, window: `${window}ms`, resolution, prefetch: `${lifeMs}ms` },
    '',
  )
  const plain = definePolicy({ name: 'plain', limit, window: '1s' }, '')
  const open: OpenGrant[] = []
  const receipts: [Receipt, Receipt][] = []
  let nextId = 2 ** 52
  for (const step of steps) {
    elapse(step.elapsedMs)
    const { key, cost } = step
    const closing = open.filter((grant) => grant.key === key).slice(0, step.closes)
    const closed = closing.map(({ id, units }) => ({
      id,
      spent: step.op === 'reset' ? 0 : Math.floor(units * step.spentShare),
    }))
    nextId += 1
    const keeping = open.filter((grant) => grant.key === key).slice(step.closes)
    const kept = keeping.slice(0, step.keeps).map(({ id, units }) => {
      const left = Math.floor(units * step.leftShare)
      return { id, left, freed: Math.floor((units - left) * step.spentShare) }
    })
    const terms = { id: nextId, lifeMs, divisor: step.divisor, closed, kept }
    const asked = { policy, key, cost, limit: step.limit }
    const beside: AnyCheck[] = step.isBesideAnother
      ? [{ policy: plain, key, cost: 1, limit: plain.limit }]
      : []
    let own: readonly [AnyCheck[], AnyCheck[]] = [
      [asked, ...beside],
      [asked, ...beside],
    ]
    if (step.op === 'grant' || step.op === 'reset')
      own = [[{ ...asked, terms }], [{ ...asked, terms }]]
    if (step.op === 'refund') {
      const pair = receipts[step.settles % Math.max(1, receipts.length)]
      if (!pair) continue
      receipts.splice(receipts.indexOf(pair), 1)
      own = [[{ ...pair[0].check, receipt: pair[0] }], [{ ...pair[1].check, receipt: pair[1] }]]
    }
    const here = await answersOf(inMemory.store, step.op, own[0])
    const there = await answersOf(inRedis.store, step.op, own[1])
    expect(there.map(comparable), JSON.stringify(step)).toEqual(here.map(comparable))
    const taken = here[0]?.units ?? 0
    for (const grant of closing) open.splice(open.indexOf(grant), 1)
    if (step.op === 'grant' && !step.isLate) {
      for (const [index, { left }] of kept.entries()) {
        const grant = keeping[index]
        if (grant) grant.units = left
      }
    }
    if (taken > 0) open.push({ id: nextId, key, units: taken })
    const [one, other] = [here[0]?.receipt, there[0]?.receipt]
    if (one && other) receipts.push([one, other])
    const keys = (await inRedis.storedKeys?.()) ?? []
    for (const { ttlMs } of keys) {
      expect(ttlMs).toBeGreaterThan(0)
      expect(ttlMs).toBeLessThanOrEqual(
        1.5 * Math.max(window, 1_000) + lifeMs + 2 * resolution + 10_000,
      )
    }
  }
}

type Answer = Partial<Outcome & Granted & { readonly changed: boolean }>

async function answersOf(
  { change, grant, apply }: Store,
  op: AnyOp,
  checks: readonly AnyCheck[],
): Promise<readonly Answer[]> {
  if (op === 'grant') {
    return (await grant?.(checks.flatMap((check) => (hasTerms(check) ? [check] : [])))) ?? []
  }
  const changed = changeOf(op, checks)
  if (changed) return (await change(changed)).map((isFound) => ({ changed: isFound }))
  return apply(op as DecidingOp, checks)
}

function hasTerms(check: AnyCheck): check is GrantCheck {
  return check.terms !== undefined
}

function comparable({ receipt, settled, policy, ...answer }: Answer): object {
  return { ...answer, policy: policy?.id, taken: (receipt ?? settled)?.at }
}
