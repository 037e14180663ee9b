import { createLimiter } from '@sluice/core'
import { checkHistory, type HistoryLine, readHistory } from '@sluice/testing/histories'
import { MemoryStore, rateLimit } from 'express-rate-limit'
import fc from 'fast-check'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { note } from './figures.ts'

const limit = 6
const windowMs = 1_000
type Answer = Pick<HistoryLine, 'decision' | 'remaining' | 'retryAfterMs'>
type Take = (key: string, cost: number) => Promise<Answer>

function sluice(algorithm: 'sliding-log' | 'fixed-window'): Take {
  const limiter = createLimiter({ name: 'p', limit, window: windowMs, algorithm })
  return async (key, cost) => {
    const { allowed, remaining = 0, retryAfterMs } = await limiter.consume(key, { cost })
    return { decision: allowed ? 'allowed' : 'denied', remaining, retryAfterMs }
  }
}

/** The store of express-rate-limit, with the comparison that its middleware makes. */
function expressRateLimit(): Take {
  const store = new MemoryStore()
  rateLimit({ windowMs, limit, store })
  return async (key) => {
    const { totalHits, resetTime } = await store.increment(key)
    const allowed = totalHits <= limit
    return {
      decision: allowed ? 'allowed' : 'denied',
      remaining: Math.max(0, limit - totalHits),
      retryAfterMs: allowed ? 0 : Number(resetTime) - Date.now(),
    }
  }
}

function rateLimiterFlexible(): Take {
  const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1_000 })
  const toldBy = (answer: unknown): RateLimiterRes => {
    if (answer instanceof RateLimiterRes) return answer
    throw answer
  }
  return (key, cost) =>
    limiter.consume(key, cost).then(
      ({ remainingPoints: remaining }) => ({ decision: 'allowed', remaining, retryAfterMs: 0 }),
      (answer: unknown) => {
        const { remainingPoints: remaining, msBeforeNext: retryAfterMs } = toldBy(answer)
        return { decision: 'denied', remaining, retryAfterMs }
      },
    )
}

const requests = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b'),
    cost: fc.integer({ min: 1, max: 3 }),
    elapsedMs: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.nat({ max: 400 })),
  }),
  { minLength: 200, maxLength: 400 },
)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What the histories of a limiter show, by a law that the limiter may never have promised. */
async function findingsOf(open: () => Take, maxCost: number, extraUnits: number) {
  const law = { limit, windowMs, extraUnits, toleranceMs: 0 }
  const kinds = new Set<string>()
  let written = 0
  for (const steps of fc.sample(requests, { numRuns: 30, seed: 1 })) {
    const take = open()
    let text = ''
    for (const { key, cost: wanted, elapsedMs } of steps) {
      vi.advanceTimersByTime(elapsedMs)
      const [now, cost] = [Date.now(), Math.min(wanted, maxCost)]
      const line = { start: now, end: now, process: 'p', key, policy: 'p', cost }
      text += `${JSON.stringify({ ...line, ...(await take(key, cost)) })}\n`
    }
    const report = checkHistory(readHistory(text), { p: law })
    for (const { kind } of report.findings) kinds.add(kind)
    written += report.lines
  }
  return { kinds: [...kinds].sort(), written }
}

/** `remaining` of a fixed window contradicts a rolling bound, as its admissions do. */
const edges = ['contradiction', 'over-limit']

it.for([
  { name: 'sliding-log of Sluice', open: () => sluice('sliding-log'), rolling: [], own: [] },
  { name: 'fixed-window of Sluice', open: () => sluice('fixed-window'), rolling: edges, own: [] },
  { name: 'express-rate-limit', open: expressRateLimit, rolling: edges, own: [], maxCost: 1 },
  { name: 'rate-limiter-flexible', open: rateLimiterFlexible, rolling: edges, own: [], maxCost: 1 },
  {
    // A denied request takes its units, so that a smaller one after it is denied too.
    ...{ name: 'rate-limiter-flexible with costs', open: rateLimiterFlexible },
    ...{ rolling: [...edges, 'wrongful-refusal'], own: ['contradiction', 'wrongful-refusal'] },
  },
])(
  'the history checker judges $name by its own law, and by a rolling one',
  async (limiter, { task }) => {
    const { open, rolling, own, maxCost = 3 } = limiter
    const byRolling = await findingsOf(open, maxCost, 0)
    const byOwn = await findingsOf(open, maxCost, limit)
    note(task, { otherLimiters: 1, lines: byRolling.written + byOwn.written })
    expect({ rolling: byRolling.kinds, own: byOwn.kinds }).toEqual({ rolling, own })
  },
)
