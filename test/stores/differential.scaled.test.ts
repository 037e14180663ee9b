import type { Check, DecidingOp, Outcome, Receipt, Store } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { note, replayed } from '../evidence/figures.ts'
import { changeOf } from '../support/store-through.ts'
import type { Expected } from './oracle/life.ts'
import { Oracle, type OracleReceipt } from './oracle/oracle.ts'
import {
  mapDriver,
  memoryDriver,
  packedDriver,
  postgresDriver,
  runsOf,
  type StoreServer,
  serverOf,
  sortedSetDriver,
} from './store-drivers.ts'
import {
  endlessTrace,
  hugeTraces,
  type Request,
  raisedTrace,
  type Trace,
  traces,
} from './traces.ts'

/** One decision that a refund may name: the receipts of the store and of the oracle. */
interface Taken {
  readonly receipts: readonly (Receipt | undefined)[]
  readonly expected: readonly (OracleReceipt | undefined)[]
  /** Units of each that were given back. */
  readonly refunded: number[]
}

describe.each([
  { driver: memoryDriver, server: 0 },
  { driver: mapDriver, server: 300 },
  { driver: postgresDriver, server: 30 },
  { driver: packedDriver, server: 300 },
  { driver: sortedSetDriver, server: 300 },
])('$driver.name', ({ driver, server: runs }) => {
  const server = serverOf(driver)
  const numRuns = runsOf(driver, { memory: 3_000, server: runs })

  const law = (drawn: fc.Arbitrary<Trace>) =>
    fc.asyncProperty(drawn, (trace) => compare(server, trace))

  it('gives the answers of the oracle on random traces', { timeout: 120_000 }, async ({ task }) => {
    await fc.assert(law(traces), { numRuns, examples: [[raisedTrace]], ...replayed })
    note(task, { traces: numRuns })
  })

  // A sorted set has a member for every unit, and a row of Postgres travels whole: their logs are bounded.
  it.skipIf(driver === sortedSetDriver || driver === postgresDriver)(
    'does so with the largest limits and costs',
    { timeout: 120_000 },
    () =>
      fc.assert(law(hugeTraces), {
        numRuns: Math.ceil(numRuns / 3),
        examples: [[endlessTrace]],
      }),
  )
})

async function compare(
  server: Pick<StoreServer, 'open'>,
  { startMs, steps }: Trace,
): Promise<void> {
  let now = startMs
  const { store, close } = await server.open(() => now)
  const oracle = new Oracle()
  const taken: Taken[] = []
  try {
    for (const { elapsedMs, requests } of steps) {
      if (oracle.mayStepTo(now + elapsedMs)) now += elapsedMs
      oracle.stepTo(now)
      const resolved = requests.map((request) => settlement(request, taken, oracle))
      const answers = await Promise.all(resolved.map((request) => answerOf(store, request)))
      for (const [index, { op, checks, receipts: given }] of resolved.entries()) {
        const answer = oracle.apply(op, checks, { now, receipts: given })
        const { changed, outcomes: found = [] } = answers[index] ?? {}
        const expected = changed ? answer.expected.map(({ allowed }) => allowed) : answer.expected
        const what = `${op} at ${now} of ${describeChecks(checks)}`
        expect(changed ?? found.map(comparable), what).toEqual(expected)
        const receipts = found.map(({ receipt }) => receipt)
        if (receipts.some((receipt) => receipt !== undefined)) {
          taken.push({ receipts, expected: answer.receipts, refunded: found.map(() => 0) })
        }
      }
    }
  } finally {
    await close()
  }
}

async function answerOf(store: Store, { op, checks }: Request) {
  const change = changeOf(op, checks)
  const changed = change && (await store.change(change))
  return { changed, outcomes: changed ? [] : await store.apply(op as DecidingOp, checks) }
}

/**
 * A refund, a release or a renewal as a limiter asks for it: with the checks and receipts of what was taken, and no unit twice. Leases are not
 * refunded in part.
 */
function settlement(
  request: Request,
  taken: Taken[],
  oracle: Oracle,
): Request & { receipts: readonly (OracleReceipt | undefined)[] } {
  const { op } = request
  if (op !== 'refund' && op !== 'release' && op !== 'renew') return { ...request, receipts: [] }
  // Of the latest ones, since older units have mostly left their windows.
  const latest = taken.slice(-10)
  const chosen = latest[request.settles % Math.max(1, latest.length)]
  const pairs = (chosen?.receipts ?? []).flatMap((receipt, index) => {
    const expected = chosen?.expected[index]
    expect(receipt === undefined).toBe(expected === undefined)
    if (!receipt || !expected) return []
    const isLease = receipt.check.policy.algorithm === 'concurrency'
    const refunded = chosen?.refunded[index] ?? 0
    const left = receipt.check.cost - refunded
    const cost = op !== 'refund' || isLease ? left : Math.ceil(left * request.share)
    if (!(op === 'refund' || isLease) || cost === 0 || !oracle.maySettle(expected)) return []
    if (op === 'refund' && chosen) chosen.refunded[index] = refunded + cost
    return [{ check: { ...receipt.check, cost, receipt, refunded }, expected }]
  })
  if (pairs.length === 0) return { ...request, op: 'peek', receipts: [] }
  return {
    ...request,
    checks: pairs.map(({ check }) => check),
    receipts: pairs.map(({ expected }) => expected),
  }
}

function comparable(outcome: Outcome): Expected {
  const { allowed, limit, remaining = -1, resetMs = -1, retryAfterMs, delayMs } = outcome
  return { allowed, limit, remaining, resetMs, retryAfterMs, delayMs }
}

function describeChecks(checks: readonly Check[]): string {
  return checks
    .map(({ policy, key, cost, limit }) => `${policy.id} ${key} cost ${cost} limit ${limit}`)
    .join(', ')
}
