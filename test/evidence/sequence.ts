import type { Check, Outcome, PolicyOptions, Receipt, Store } from '@sluice/core'
import type { HistoryLaw, HistoryLine } from '@sluice/testing/histories'
import fc from 'fast-check'
import { policiesOf } from '../stores/traces.ts'
import type { Drawn } from '../support/weighted.ts'

const limit = 6
const windowMs = 1_000

const step = fc.record({
  key: fc.constantFrom('a', 'b'),
  cost: fc.integer({ min: 1, max: 3 }),
  elapsedMs: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.nat({ max: 500 })),
  /** Whether the next step comes when the last wait is over, or a moment before. */
  waits: fc.constantFrom('no', 'no', 'as told', 'less'),
  does: fc.constantFrom(...Array(8).fill('consume'), 'both', 'both', 'refund', 'reset', 'peek'),
})

export const sequences = fc.array(step, { minLength: 50, maxLength: 150 })

/** One client after the other asks a store, and what becomes of them is known to the millisecond. */
export async function runSequence(
  store: Store,
  setNow: (ms: number) => void,
  { algorithm, steps }: { algorithm: string; steps: Drawn<typeof sequences> },
): Promise<{ lines: readonly HistoryLine[]; law: HistoryLaw }> {
  const own = { name: 'a', limit, window: windowMs, algorithm } as PolicyOptions
  const [policy, wide] = policiesOf([own, { name: 'wide', limit: 1_000_000, window: '1m' }])
  if (!policy || !wide) throw new Error('two policies')
  const lines: HistoryLine[] = []
  let now = 1_795_195_800_000
  let waitMs = 0
  const taken: { receipt: Receipt; line: HistoryLine }[] = []
  for (const { key, cost, elapsedMs, waits, does } of steps) {
    now += waits === 'no' || waitMs < 2 ? elapsedMs : waits === 'less' ? waitMs - 1 : waitMs
    setNow(now)
    const line = { start: now, end: now, process: '', key, policy: 'a', cost, id: lines.length }
    const check: Check = { policy, key, cost, limit }
    if (does === 'peek') await store.apply('peek', [check])
    else if (does === 'reset') {
      await store.change({ op: 'reset', checks: [check] })
      lines.push({ ...line, decision: 'reset' })
    } else if (does === 'refund') {
      const oldest = taken.splice(-3, 1)[0]
      if (!oldest) continue
      const { receipt, line: admitted } = oldest
      await store.change({ op: 'refund', checks: [{ ...receipt.check, receipt }] })
      lines.push({ ...admitted, end: now, decision: 'refunded' })
    } else {
      const beside = { policy: wide, key, cost: 1, limit: wide.limit }
      const [outcome]: readonly Outcome[] = await store.apply(
        'consume',
        does === 'both' ? [check, beside] : [check],
      )
      if (!outcome) throw new Error('no outcome')
      const { allowed, remaining = 0, retryAfterMs, receipt } = outcome
      lines.push({
        ...{ ...line, decision: allowed ? 'allowed' : 'denied', remaining },
        retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
      })
      waitMs = Number.isFinite(retryAfterMs) ? retryAfterMs : 0
      const answered = lines.at(-1)
      if (receipt && answered) taken.push({ receipt, line: answered })
    }
  }
  const extraUnits = algorithm === 'sliding-log' ? 0 : limit
  return { lines, law: { limit, windowMs, extraUnits, toleranceMs: 0 } }
}
