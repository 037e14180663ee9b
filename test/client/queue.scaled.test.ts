import { createFetch, type Fetch } from '@sluice/client'
import { parseHeaders } from '@sluice/headers'
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { scaled } from '../support/scale.ts'
import { limitedApi } from './limited-api.ts'
import { fakeTime, settled } from './scripted-api.ts'

fakeTime()
beforeEach(() => {
  // Real clocks have fractions, other ones each time.
  const whole = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => whole() + ((whole() * 0.618) % 1) / 2)
})

const origin = 'https://api.example.com'

interface Sent {
  readonly path: string
  readonly sentMs: number
  readonly heardMs: number
  readonly status: number
  readonly headers: Headers
}

/** A `fetch` that writes down what was sent and heard when, unless nobody heard it. */
function watched(send: Fetch): { fetch: Fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const watching: Fetch = async (input, init) => {
    const sentMs = performance.now()
    const { pathname: path } = new URL(String(input))
    const response = await send(input, init)
    const { status, headers } = response
    sent.push({ path, sentMs, heardMs: performance.now(), status, headers })
    return response
  }
  return { fetch: watching, sent }
}

interface Plan {
  readonly path: string
  readonly atMs: number
  readonly abortMs: number | undefined
}

/** Makes calls at their times, and resolves when all are over to those that were not aborted. */
async function callAll(fetch: Fetch, plans: readonly Plan[]): Promise<Response[]> {
  const calls = plans.map(async ({ path, atMs, abortMs }) => {
    await new Promise((resolve) => setTimeout(resolve, atMs))
    const controller = new AbortController()
    const abort = () => controller.abort('late')
    const timer = abortMs === undefined ? undefined : setTimeout(abort, abortMs)
    try {
      const response = await fetch(origin + path, { signal: controller.signal })
      await response.text()
      return response
    } finally {
      clearTimeout(timer)
    }
  })
  const results = await settled(Promise.allSettled(calls))
  return results.flatMap((result, index) => {
    if (result.status === 'fulfilled') return [result.value]
    expect(result.reason).toBe('late')
    expect(plans[index]?.abortMs).toBeDefined()
    return []
  })
}

/** Requests that were sent after a refusal was heard, and before it was over, where they are subject to it. */
function early(sent: readonly Sent[]) {
  const known = (path: string) =>
    Math.min(...sent.flatMap((one) => (one.path === path ? [one.heardMs] : [])))
  return sent.flatMap((refused) => {
    if (refused.status !== 429) return []
    const nowMs = instantOf(refused)
    const { policies, retryAfterMs = 0 } = parseHeaders(refused.headers, { nowMs })
    const spent = policies.filter(({ name, remaining }) => name !== undefined && remaining === 0)
    return sent.flatMap((later) => {
      if (later.sentMs <= refused.heardMs) return []
      const afterMs = later.sentMs - refused.heardMs
      const names = parseHeaders(later.headers).policies.map(({ name }) => name)
      const shared = spent.filter(({ name }) => names.includes(name))
      const isKnown = later.sentMs > known(later.path)
      const resets = isKnown ? shared.map(({ resetMs = 0 }) => Math.min(resetMs, retryAfterMs)) : []
      const waitMs = Math.max(later.path === refused.path ? retryAfterMs : 0, ...resets)
      return afterMs < waitMs - 0.01 ? [{ refused, later, afterMs, waitMs }] : []
    })
  })
}

/** When it was heard, in milliseconds since 1970. */
function instantOf({ heardMs }: Sent): number {
  return Date.now() - Math.floor(performance.now()) + Math.floor(heardMs)
}

const policy = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  window: fc.integer({ min: 500, max: 8000 }),
  algorithm: fc.constantFrom('sliding-log', 'fixed-window', 'token-bucket', 'sliding-counter'),
})

const paths = ['/a', '/b', '/c'] as const

const world = fc.record({
  policies: fc.array(policy, { minLength: 1, maxLength: 3 }),
  /** Which policies each path has. */
  masks: fc.tuple(...paths.map(() => fc.integer({ min: 1, max: 7 }))),
  dialect: fc.constantFrom('draft-11', 'draft-7', 'draft-6', 'legacy', 'legacy-delta'),
  retryAfter: fc.constantFrom(undefined, 'date', 'epoch'),
  latencyMs: fc.integer({ min: 0, max: 300 }),
  spreadMs: fc.constantFrom(0, 100, 2000),
  bodyMs: fc.integer({ min: 0, max: 2000 }),
  pace: fc.boolean(),
  plans: fc.array(
    fc.record({
      path: fc.constantFrom(...paths),
      atMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 15_000 })),
      abortMs: fc.option(fc.integer({ min: 0, max: 15_000 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 40 },
  ),
})

const patience = { maxWaitMs: 3_600_000, maxTotalWaitMs: 3_600_000, retries: 100 }

describe('whatever policies there are, and whoever is aborted', () => {
  it('no call is early, all others get through, and nothing leaks', async () => {
    const property = fc.asyncProperty(
      world,
      async ({ policies, masks, dialect, pace, plans, ...net }) => {
        const named = policies.map((one, index) => ({ ...one, name: `p${index}` }))
        const policiesOf = (path: string) => {
          const mask = masks.find((_, index) => paths[index] === path) ?? 1
          const own = named.filter((_, index) => mask & (1 << index))
          return own.length > 0 ? own : named.slice(0, 1)
        }
        const api = limitedApi({ policiesOf, dialects: [dialect], ...net })
        const { fetch: send, sent } = watched(api.fetch)
        const fetch = createFetch({ fetch: send, pace, ...patience })

        const responses = await callAll(fetch, plans)
        expect(responses.filter(({ ok }) => !ok)).toEqual([])
        const patient = plans.filter(({ abortMs }) => abortMs === undefined)
        expect(responses.length).toBeGreaterThanOrEqual(patient.length)
        expect(early(sent)).toEqual([])
        await vi.advanceTimersByTimeAsync(200_000)
        expect(vi.getTimerCount()).toBe(0)

        // Nothing that was taken is missing: as many as at the very first go without a wait.
        const path = plans[0]?.path ?? '/a'
        const own = policiesOf(path)
        const limit = Math.min(...own.map((one) => one.limit))
        // With the pace half of it, of one policy; several of an old dialect are told one at a time.
        const free = pace ? (own.length === 1 ? Math.ceil(limit / 2) : 1) : limit
        for (let call = 0; call < free; call++) {
          const startMs = performance.now()
          const before = sent.length
          await settled(fetch(origin + path))
          expect(sent.slice(before).map(({ sentMs }) => sentMs)).toEqual([startMs])
        }
      },
    )
    await fc.assert(property, { numRuns: scaled(25, 150) })
  })

  it('no call is early for a server that names its policies occasionally', async () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const left = name.map((one) => ({ status: 200, headers: { RateLimit: `"${one}";r=5;t=9` } }))
    const sizes = fc.constantFrom(5, 50, 500)
    const older = sizes.map((limit) => {
      const RateLimit = `limit=${limit}, remaining=4, reset=9`
      return { status: 200, headers: { RateLimit, 'RateLimit-Policy': `${limit};w=9` } }
    })
    const spent = fc.oneof(
      fc.constant(() => ({})),
      name.map((one) => (s: number) => ({ RateLimit: `"${one}";r=0;t=${s}` })),
      sizes.map((q) => (s: number) => ({ RateLimit: `limit=${q}, remaining=0, reset=${s}` })),
    )
    const refusal = fc.tuple(fc.integer({ min: 1, max: 30 }), spent).map(([s, spentFor]) => {
      return { status: 429, headers: { 'Retry-After': `${s}`, ...spentFor(s) } }
    })
    const answers = fc.array(
      fc.record({
        answer: fc.oneof(left, older, refusal),
        tookMs: fc.integer({ min: 0, max: 3000 }),
      }),
      { minLength: 1, maxLength: 30 },
    )
    const property = fc.asyncProperty(answers, world, async (script, { plans, pace }) => {
      let asked = 0
      const { fetch: send, sent } = watched(async () => {
        const { answer, tookMs } = script[asked++] ?? { answer: {}, tookMs: 10 }
        await new Promise((resolve) => setTimeout(resolve, tookMs))
        return new Response('', answer)
      })
      await callAll(createFetch({ fetch: send, pace, ...patience }), plans)
      expect(early(sent).filter(({ refused, later }) => refused.path === later.path)).toEqual([])
    })
    await fc.assert(property, { numRuns: scaled(60, 300) })
  })

  it('calls that wait long enough get through at about the rate', { timeout: 90_000 }, async () => {
    const load = fc.record({
      limit: fc.integer({ min: 2, max: 40 }),
      // Headers tell whole seconds.
      seconds: fc.integer({ min: 1, max: 10 }),
      deadlineMs: fc.integer({ min: 2000, max: 20_000 }),
      share: fc.double({ min: 1.2, max: 4, noNaN: true }),
    })
    const property = fc.asyncProperty(load, async ({ limit, seconds, deadlineMs, share }) => {
      const window = seconds * 1000
      const evenMs = Math.max(window / limit, 20)
      const slow = { name: 'slow', limit, window, algorithm: 'sliding-log' } as const
      const api = limitedApi({ policiesOf: () => [slow] })
      const fetch = createFetch({ fetch: api.fetch, ...patience })
      const first = Array(limit + 1).fill({ path: '/a', atMs: 0, abortMs: undefined })
      // More calls than may go, each with a deadline that is longer than the gate is closed.
      const abortMs = deadlineMs + window * 1.1 + 1500
      const count = Math.min(150, Math.ceil((60_000 / evenMs) * share))
      const rest = Array.from({ length: count }, (_, index) => ({
        path: '/a',
        atMs: 100 + (index * evenMs) / share,
        abortMs,
      }))
      await callAll(fetch, [...first, ...rest])
      const served = api.arrivals.filter(({ status }) => status === 200).map(({ atMs }) => atMs)
      // From the opening on, until the last ones are served or gone.
      const opened = served.slice(limit)
      const lastingMs = (opened.at(-1) ?? 0) - (opened[0] ?? 0)
      expect(opened.length).toBeGreaterThanOrEqual(Math.floor((lastingMs / evenMs) * 0.75))
      expect(opened.length).toBeGreaterThan(Math.min(count, deadlineMs / evenMs) / 2)
    })
    await fc.assert(property, { numRuns: scaled(6, 40) })
  })
})
