import type { Check, Outcome, Receipt } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { type Expected, Oracle, type OracleReceipt } from './oracle.ts'
import { memoryDriver, packedDriver, type StoreDriver, sortedSetDriver } from './store-drivers.ts'
import { type Request, type Trace, traces } from './traces.ts'

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.stop()
})

/** One decision that a refund may name: the receipts of the store and of the oracle. */
interface Taken {
  readonly receipts: readonly (Receipt | undefined)[]
  readonly expected: readonly (OracleReceipt | undefined)[]
}

const runs = { memory: 3_000, redis: 300 }

describe.each([
  { driver: memoryDriver, numRuns: runs.memory },
  { driver: packedDriver, numRuns: runs.redis },
  { driver: sortedSetDriver, numRuns: runs.redis },
])('$driver.name', ({ driver, numRuns }) => {
  it('gives the answers of the oracle on random traces', {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(traces, (trace) => compare(driver, trace)),
      { numRuns },
    )
  })
})

async function compare(driver: StoreDriver, { startMs, steps }: Trace): Promise<void> {
  let now = startMs
  const { store, close } = await driver.open(redis.url, () => now)
  const oracle = new Oracle()
  const taken: Taken[] = []
  try {
    for (const { elapsedMs, requests } of steps) {
      if (oracle.mayStepTo(now + elapsedMs)) now += elapsedMs
      const resolved = requests.map((request) => refundable(request, taken))
      const outcomes = await Promise.all(resolved.map(({ op, checks }) => store.apply(op, checks)))
      for (const [index, { op, checks, receipts }] of resolved.entries()) {
        const answer = oracle.apply(op, checks, { now, receipts })
        const found = outcomes[index] ?? []
        expect(found.map(comparable), `${op} at ${now} of ${describeChecks(checks)}`).toEqual(
          answer.expected,
        )
        taken.push({
          receipts: found.map(({ receipt }) => receipt),
          expected: answer.receipts,
        })
      }
    }
  } finally {
    await close()
  }
}

/** A refund as a limiter asks for it: once a decision, with the checks and receipts of what was taken. */
function refundable(
  request: Request,
  taken: Taken[],
): Request & { receipts: readonly (OracleReceipt | undefined)[] } {
  if (request.op !== 'refund') return { ...request, receipts: [] }
  const [chosen] = taken.splice(request.refunds % Math.max(1, taken.length), 1)
  const receipts = (chosen?.receipts ?? []).filter((receipt) => receipt !== undefined)
  const expected = (chosen?.expected ?? []).filter((receipt) => receipt !== undefined)
  expect(receipts.length).toBe(expected.length)
  if (receipts.length === 0) return { ...request, op: 'peek', receipts: [] }
  return {
    ...request,
    checks: receipts.map((receipt) => ({ ...receipt.check, receipt })),
    receipts: expected,
  }
}

function comparable({ allowed, limit, remaining, resetMs, retryAfterMs }: Outcome): Expected {
  return {
    allowed,
    limit,
    remaining: remaining ?? -1,
    resetMs: resetMs ?? -1,
    retryAfterMs,
  }
}

function describeChecks(checks: readonly Check[]): string {
  return checks
    .map(({ policy, key, cost, limit }) => `${policy.id} ${key} cost ${cost} limit ${limit}`)
    .join(', ')
}
