import type { CallContext, Outbound } from '@sluice/outbound'
import { describe, expect, it, vi } from 'vitest'
import { untilAborted } from '../queue/broker-bench.ts'
import { fakeTime, observed } from './faked-time.ts'

const never = (): Promise<never> => new Promise(() => undefined)

describe('a call of an outbound', () => {
  fakeTime()
  const { events, make } = observed({ limits: [{ limit: 1, window: '1s' }] })

  /** How long after the end of `first` the next call is made. */
  async function nextAfter(outbound: Outbound, first: Promise<unknown>): Promise<number> {
    const ends = first.catch(() => undefined).then(() => Date.now())
    const next = outbound.schedule(async () => Date.now())
    await vi.advanceTimersByTimeAsync(100_000)
    return (await next) - (await ends)
  }

  it('that times out is aborted, fails, and keeps its units as long as it may still arrive', async () => {
    const outbound = make({ timeout: '10s', maxWait: '5m' })
    let context: CallContext | undefined
    const call = outbound.schedule((given) => {
      context = given
      return never()
    })
    const failed = expect(call).rejects.toMatchObject({ code: 'SLUICE_OUTBOUND_TIMEOUT' })
    expect(await nextAfter(outbound, call)).toBeGreaterThanOrEqual(6_000)
    await failed
    expect(context?.signal.reason).toMatchObject({ code: 'SLUICE_OUTBOUND_TIMEOUT' })
    expect(events[0]).toMatchObject({ type: 'call', runMs: 10_000, answer: 'timeout' })
  })

  it('can have its own timeout', async () => {
    const outbound = make()
    const call = outbound.schedule(never, { timeout: '2s' }).catch((error) => error)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await call).toMatchObject({ code: 'SLUICE_OUTBOUND_TIMEOUT' })
  })

  it.each([
    ['fails without an answer', new Error('ECONNRESET'), 6_000],
    ['fails with an answer', Object.assign(new Error('404'), { response: {} }), 1_000],
  ])('that %s keeps its units accordingly', async (_what, error, leastMs) => {
    const outbound = make({ maxWait: '5m' })
    const call = outbound.schedule(() => Promise.reject(error))
    const waitedMs = await nextAfter(outbound, call)
    expect(waitedMs).toBeGreaterThanOrEqual(leastMs)
    expect(waitedMs).toBeLessThan(leastMs + 200)
  })

  it('sees when its own signal is aborted', async () => {
    const outbound = make()
    const controller = new AbortController()
    const own = { signal: controller.signal }
    const call = outbound.schedule(({ signal }) => untilAborted(signal), own)
    await vi.advanceTimersByTimeAsync(100)
    controller.abort(new Error('the user left'))
    await expect(call).rejects.toThrow('the user left')
  })

  it('may be a fetch of a Request, with its method and its signal', async () => {
    const seen: { input: Request | URL; init: RequestInit }[] = []
    vi.stubGlobal('fetch', async (input: Request | URL, init: RequestInit) => {
      seen.push({ input, init })
      return new Response('')
    })
    const outbound = make()
    const controller = new AbortController()
    const request = new Request('https://crm.example/contacts?token=1', {
      method: 'POST',
      body: '{}',
      signal: controller.signal,
    })
    await outbound.fetch(request, { headers: { 'X-Trace': '7' } })
    expect(seen[0]?.input).toBe(request)
    expect(seen[0]?.init.headers).toEqual({ 'X-Trace': '7' })
    controller.abort()
    expect(seen[0]?.init.signal?.aborted).toBe(true)
    expect(events[0]).toMatchObject({ label: 'POST https://crm.example/contacts' })
    const waits = outbound.fetch(new Request('https://crm.example/', { signal: controller.signal }))
    await expect(waits).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('is measured by a clock that never steps', async () => {
    const outbound = make()
    const call = outbound.schedule(() => new Promise((resolve) => setTimeout(resolve, 500)))
    await vi.advanceTimersByTimeAsync(250)
    vi.setSystemTime(Date.now() + 3_600_000)
    await vi.advanceTimersByTimeAsync(250)
    await call
    expect(events.find(({ type }) => type === 'call')).toMatchObject({ waitMs: 0, runMs: 500 })
  })
})
