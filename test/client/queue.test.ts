import { createFetch } from '@sluice/client'
import { describe, expect, it, vi } from 'vitest'
import { GateRegistry } from '../../packages/client/src/throttle/registry.ts'
import { abortsAfter, limitedApi } from './limited-api.ts'
import { fakeTime, settled } from './scripted-api.ts'

fakeTime()

const origin = 'https://api.example.com'
const slow = { name: 'slow', limit: 10, window: '10s' } as const

describe('a call that is aborted in the line', () => {
  it('does not delay others at an open gate', async () => {
    const api = limitedApi({ policiesOf: () => [{ ...slow, algorithm: 'token-bucket' }] })
    const fetch = createFetch({ fetch: api.fetch })
    await settled(Promise.all(Array.from({ length: 11 }, () => fetch(origin))))
    const call = () => fetch(origin, { signal: abortsAfter(1500) })
    await settled(Promise.allSettled(Array.from({ length: 50 }, call)))
    const startMs = performance.now()
    expect((await settled(fetch(origin))).status).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(2000)
  })

  it('does not affect waiting calls, nor do calls that give up', async () => {
    const api = limitedApi({ policiesOf: () => [slow] })
    const fetch = createFetch({ fetch: api.fetch, maxWaitMs: 600_000 })
    const controller = new AbortController()
    const patient = Array.from({ length: 500 }, () => fetch(origin, { signal: controller.signal }))
    await vi.advanceTimersByTimeAsync(3_000)
    const looks = vi.spyOn(GateRegistry.prototype, 'gatesOf')
    const impatient = createFetch({ fetch: api.fetch, maxWaitMs: 1_000, retries: 0 })
    const others = Array.from({ length: 200 }, () => impatient(origin))
    const aborted = Array.from({ length: 200 }, () => fetch(origin, { signal: abortsAfter(1) }))
    await settled(Promise.allSettled([...others, ...aborted]))
    // Each of them looks some times; all who wait are looked at now and then.
    expect(looks.mock.calls.length).toBeLessThan(20_000)
    controller.abort()
    await settled(Promise.allSettled(patient))
  })
})

describe('a call that one gate holds for long', () => {
  const login = { name: 'login', limit: 1, window: '50s' } as const
  const site = { name: 'site', limit: 5, window: '5s' } as const

  it('takes no units of its other gates meanwhile', async () => {
    const api = limitedApi({ policiesOf: (path) => (path === '/login' ? [site, login] : [site]) })
    const fetch = createFetch({ fetch: api.fetch })
    const calls = [fetch(`${origin}/login`), fetch(`${origin}/login`)]
    await vi.advanceTimersByTimeAsync(100)
    // The gate of the site closes for five seconds, and spaces calls by one then.
    for (let call = 0; call < 6; call++) calls.push(fetch(`${origin}/items`))
    await vi.advanceTimersByTimeAsync(7000)
    for (let call = 0; call < 20; call++) calls.push(fetch(`${origin}/login`))
    const startMs = performance.now()
    expect((await settled(fetch(`${origin}/items`))).status).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(3000)
    await settled(Promise.allSettled(calls))
  })

  it('passes in its turn, although others keep taking each gate', async () => {
    const a = { name: 'a', limit: 10, window: '5s' } as const
    const b = { name: 'b', limit: 10, window: '5s' } as const
    const of: Record<string, (typeof a)[] | (typeof b)[]> = { '/a': [a], '/b': [b] }
    const api = limitedApi({ policiesOf: (path) => of[path] ?? [a, b] })
    const fetch = createFetch({ fetch: api.fetch, maxTotalWaitMs: 600_000 })
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const calls: Promise<Response>[] = []
    const call = (path: string, ms: number) => {
      const one = fetch(origin + path, { signal: abortsAfter(ms) })
      one.catch(() => undefined)
      calls.push(one)
    }
    // The two open 300 ms apart, and let one pass each 550 ms from then on.
    for (const path of ['/a', '/b', '/both']) await settled(fetch(origin + path))
    for (let count = 0; count < 9; count++) call('/a', 60_000)
    await vi.advanceTimersByTimeAsync(300)
    for (let count = 0; count < 9; count++) call('/b', 60_000)
    await vi.advanceTimersByTimeAsync(100)
    const startMs = performance.now()
    const both = [1, 2, 3].map(() => fetch(`${origin}/both`))
    let tookMs = Number.POSITIVE_INFINITY
    void Promise.all(both).then(() => {
      tookMs = performance.now() - startMs
    })
    for (let tick = 0; tick < 120; tick++) {
      call('/a', 20_000)
      call('/b', 20_000)
      await vi.advanceTimersByTimeAsync(250)
    }
    await settled(Promise.allSettled(calls))
    // Behind five seconds until the gates open, and two calls in front.
    expect(tookMs).toBeLessThan(10_000)
  })
})
