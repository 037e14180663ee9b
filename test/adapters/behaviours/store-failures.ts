import type { StoreErrorEvent } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import { failingStore } from '../stores.ts'

const ways = ['throws', 'rejects'] as const

/** A store that is gone. */
export const storeFailures: Behaviour = ({ limited }) => {
  it.each(ways)("H08: 'open' passes without headers when the store %s", async (how) => {
    const onStoreError = vi.fn<(event: StoreErrorEvent) => void>()
    const app = await limited({
      limit: 1,
      window: '1m',
      store: failingStore(how),
      failureMode: 'open',
      exposeHeaders: true,
      onStoreError,
    })

    const answer = await app.ask()

    expect(answer.status).toBe(200)
    expect(limitFields(answer)).toEqual({})
    expect(await app.statuses(3)).toEqual([200, 200, 200])
    // The fourth did not ask any more: the breaker was open.
    expect(onStoreError).toHaveBeenCalledTimes(3)
    expect(onStoreError.mock.calls[0]?.[0].error.code).toBe('SLUICE_STORE_FAILED')
  })

  it.each(ways)("H09: 'closed' refuses with 503 when the store %s", async (how) => {
    const store = failingStore(how)
    const app = await limited({ limit: 1, window: '1m', store, failureMode: 'closed' })

    const answer = await app.ask()

    expect(answer.status).toBe(503)
    expect(limitFields(answer)).toEqual({ 'retry-after': '5' })
    expect(answer.field('cache-control')).toBe('no-store')
    expect(answer.field('content-type')).toBe('application/problem+json')
    expect(answer.body).toBe('{"type":"about:blank","title":"Service Unavailable","status":503}')
  })

  it("'closed' is 503 whatever the status and the message of a denial are", async () => {
    const store = failingStore('throws')
    const denial = { statusCode: 420, message: 'You did too much' }
    const app = await limited({ limit: 1, window: '1m', store, failureMode: 'closed', ...denial })

    const answer = await app.ask()

    expect(answer.status).toBe(503)
    expect(answer.body).toBe('{"type":"about:blank","title":"Service Unavailable","status":503}')
  })

  it.each(ways)("'fallback' limits in local memory when the store %s", async (how) => {
    const app = await limited({ limit: 2, window: '1m', store: failingStore(how) })

    expect((await app.ask()).field('ratelimit')).toBe('"default";r=1;t=60')
    expect(await app.statuses(2)).toEqual([200, 429])
    expect((await app.ask()).field('retry-after')).toBe('60')
  })

  it('an observer that throws changes no answer', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const fail = () => {
      throw new Error('observer')
    }
    const app = await limited({
      limit: 1,
      window: '1m',
      store: failingStore('rejects'),
      onStoreError: fail,
      onDecision: fail,
    })

    expect(await app.statuses(2)).toEqual([200, 429])
  })
}
