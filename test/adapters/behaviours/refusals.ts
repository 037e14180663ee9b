import { expect, it, vi } from 'vitest'
import { raise } from '../../support/raise.ts'
import type { Behaviour } from '../adapter-conformance.ts'

const one = { limit: 1, window: '30s', algorithm: 'fixed-window' } as const

/** What a refused client reads, beside what `adapterConformance` tries. */
export const refusals: Behaviour = ({ start, limited }) => {
  it('lets a handler reply to the decision, with the headers set', async () => {
    const reached = vi.fn()
    const reply = vi.fn(async () => 'my own words')
    const limits = [{ ...one, reply }]
    const app = await start({ limits, routes: [{ path: '/', reached }] })
    await app.ask()
    const answer = await app.ask()

    expect([answer.status, answer.body]).toEqual([418, 'my own words'])
    expect(answer.field('retry-after')).toBe('30')
    expect(answer.field('cache-control')).toBe('no-store')
    expect(reached).toHaveBeenCalledTimes(1)
    expect(reply).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ allowed: false, retryAfterMs: 30_000, source: 'store' }),
    )
  })

  it.each([
    ['throws', () => raise('no reply')],
    ['rejects', async () => raise('no reply')],
  ])('passes an error on when a handler %s', async (_, reply) => {
    const app = await limited({ ...one, reply })
    await app.ask()
    const answer = await app.ask()
    expect([answer.status, answer.body]).toEqual([500, 'no reply'])
  })
}
