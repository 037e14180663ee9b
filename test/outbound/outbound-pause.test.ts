import { memoryStore } from '@sluice/core'
import type { Outbound } from '@sluice/outbound'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { storeThrough } from '../support/store-through.ts'
import { fakeTime, observed, wait } from './faked-time.ts'
import { type FlakyStore, flakyStore } from './flaky-store.ts'

let answers: Response[]

fakeTime()
beforeEach(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  answers = []
  vi.stubGlobal('fetch', async () => answers.shift() ?? new Response(''))
})

const { events, make } = observed({ limits: [{ limit: 100, window: '1s' }], maxWait: '1d' })

const refusal = (retryAfter: string, status = 429): Response =>
  new Response('', { status, headers: { 'Retry-After': retryAfter } })

async function refuse(outbound: Outbound, retryAfter: string): Promise<void> {
  answers = [refusal(retryAfter)]
  await outbound.fetch('https://crm.example/')
}

async function waitOf(outbound: Outbound): Promise<number> {
  const askedAt = Date.now()
  await outbound.fetch('https://crm.example/')
  return Date.now() - askedAt
}

describe('a pause', () => {
  let store: FlakyStore
  let told: Outbound
  let other: Outbound

  /** Two processes on a store that is known to both. */
  beforeEach(async () => {
    store = flakyStore()
    told = make({ store })
    other = make({ store })
    const first = Promise.all([waitOf(told), waitOf(other)])
    await vi.advanceTimersByTimeAsync(5_000)
    await first
  })

  it.each<[string, () => Promise<unknown>]>([
    ['an answer', async () => refusal('7')],
    ['the answer of got', async () => ({ statusCode: 429, headers: { 'retry-after': '7' } })],
    [
      'an error of axios',
      async () => {
        const response = { status: 503, headers: new Map([['Retry-After', '7']]) }
        throw Object.assign(new Error('refused'), { response })
      },
    ],
  ])('applies to a scheduled function that %s', async (_what, call) => {
    events.splice(0)
    const caller = make({ store })
    await caller.schedule(call).catch(() => undefined)
    await caller.close()
    const waits = waitOf(other)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await waits).toBeGreaterThanOrEqual(7_000)
    expect(events.find(({ type }) => type === 'paused')).toMatchObject({ forMs: 7_000 })
    expect(events.find(({ type }) => type === 'call')).toMatchObject({ answer: expect.any(Number) })
  })

  it('outlives the process that received it, whether closed or killed', async () => {
    await refuse(told, '600')
    await told.close()
    const waits = waitOf(other)
    await vi.advanceTimersByTimeAsync(610_000)
    expect(await waits).toBeGreaterThanOrEqual(600_000 - 50)
    expect(await waits).toBeLessThan(602_000)
  })

  it('is the longest of several answers', async () => {
    await refuse(told, '60')
    await vi.advanceTimersByTimeAsync(10)
    const again = make({ store })
    // A second process was told less, at the same time.
    answers = [refusal('1')]
    const lesser = again.fetch('https://crm.example/')
    const waits = waitOf(other)
    await vi.advanceTimersByTimeAsync(70_000)
    await lesser
    expect(await waits).toBeGreaterThanOrEqual(59_000)
  })

  it('delays a call whose permit arrives later from a slow store', async () => {
    const slow = make({ store: storeThrough(memoryStore(), () => wait(300)) })
    const first = slow.fetch('https://crm.example/')
    await vi.advanceTimersByTimeAsync(60_000)
    await first
    const refused = slow.schedule(() => wait(100).then(() => refusal('7')))
    const waits = waitOf(slow)
    await vi.advanceTimersByTimeAsync(60_000)
    await refused
    expect(await waits).toBeGreaterThanOrEqual(7_000)
  })

  it('is reported again to a store that has lost its data', async () => {
    await refuse(told, '60')
    await vi.advanceTimersByTimeAsync(1_000)
    store.loseAll()
    const waits = waitOf(other)
    await vi.advanceTimersByTimeAsync(70_000)
    expect(await waits).toBeGreaterThanOrEqual(58_000)
  })

  it('reaches the fleet although the store was unavailable when it began', async () => {
    let answer: (response: Response) => void = () => undefined
    vi.stubGlobal('fetch', () => new Promise<Response>((resolve) => (answer = resolve)))
    const call = told.fetch('https://crm.example/')
    await vi.advanceTimersByTimeAsync(100)
    store.isAway = true
    answer(refusal('60'))
    await call
    await vi.advanceTimersByTimeAsync(4_000)
    store.isAway = false
    await vi.advanceTimersByTimeAsync(8_000)
    vi.stubGlobal('fetch', async () => new Response(''))
    const waits = waitOf(make({ store }))
    await vi.advanceTimersByTimeAsync(70_000)
    expect(await waits).toBeGreaterThanOrEqual(47_000)
  })

  it('does not change its end when a clock is set', async () => {
    await refuse(told, '60')
    const memory = make({ store: memoryStore() })
    await refuse(memory, '60')
    const startedAt = performance.now()
    vi.setSystemTime(Date.now() + 3_600_000)
    const ends = told.fetch('https://crm.example/').then(() => performance.now() - startedAt)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(told.waiting).toBe(1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(await ends).toBeGreaterThanOrEqual(59_900)
  })
})

const retryAfter = (text: string) => ({ 'Retry-After': text })
const older = (remaining: string, reset: string) => ({
  ...{ 'X-RateLimit-Remaining': remaining, 'X-RateLimit-Reset': reset },
})
const tokens = (remaining: string, reset: string) => ({
  ...{ 'x-ratelimit-remaining-tokens': remaining, 'x-ratelimit-reset-tokens': reset },
})
const byItsClock = {
  Date: 'Thu, 01 Jan 2026 00:00:00 GMT',
  ...retryAfter('Thu, 01 Jan 2026 00:00:20 GMT'),
}

it.each([
  ['429 with Retry-After', 429, retryAfter('7'), 7_000],
  ['503 with Retry-After', 503, retryAfter('7'), 7_000],
  ['403 with Retry-After', 403, retryAfter('7'), 7_000],
  ['429 that says nothing', 429, {}, 1_000],
  ['503 that says nothing', 503, {}, 0],
  ['403 that says nothing', 403, {}, 0],
  ['403 with nothing left', 403, older('0', '9'), 9_000],
  ['200 with no tokens left', 200, tokens('0', '6s'), 6_000],
  ['429 of a model API', 429, { ...tokens('-1', '0'), 'retry-after-ms': '-1' }, 1_000],
  ['403 with nothing left, for who knows how long', 403, { 'X-RateLimit-Remaining': '0' }, 1_000],
  ['403 with something left', 403, older('5', '9'), 0],
  ['a date by its own clock', 429, byItsClock, 20_000],
  ['nothing left', 200, { RateLimit: '"default";r=0;t=5' }, 5_000],
  ['nothing left, in draft-6', 200, { 'RateLimit-Remaining': '0', 'RateLimit-Reset': '5' }, 5_000],
  ['something left', 200, { RateLimit: '"default";r=3;t=5' }, 0],
])('delays the whole fleet after %s', async (_what, status, headers, pauseMs) => {
  answers = [new Response('', { status, headers })]
  const onEvent = vi.fn()
  const store = memoryStore()
  const [told, other] = [make({ store, observers: { onEvent } }), make({ store })]
  expect((await told.fetch('https://crm.example/')).status).toBe(status)
  const waits = Promise.all([waitOf(told), waitOf(other)])
  await vi.advanceTimersByTimeAsync(30_000)
  const [own, ofOther] = await waits
  expect(Math.min(own, ofOther)).toBeGreaterThanOrEqual(pauseMs)
  expect(own).toBeLessThanOrEqual(pauseMs + 100)
  expect(ofOther).toBeLessThanOrEqual(pauseMs + 1_000)
  const paused = onEvent.mock.calls.filter(([{ type }]) => type === 'paused')
  expect(paused).toHaveLength(pauseMs > 0 ? 1 : 0)
  await Promise.all([told.close(), other.close()])
})
