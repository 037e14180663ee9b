import { createLimiter, memoryStore } from '@sluice/core'
import { expect, it } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'

const byConstant = () => 'everybody'

/** Who counts together: one name is one quota, and what has no name is private to its place. */
export const sharing: Behaviour = ({ driver, start }) => {
  it('a private limit of the application and one of a route never share a count', async () => {
    const store = memoryStore()
    const same = { limit: 3, window: '1m', store } as const
    const app = await start({
      limits: [same],
      routes: [{ path: '/' }, { path: '/x', limits: same }],
    })
    await app.statuses(2)

    const answer = await app.ask('/x')

    expect(answer.status).toBe(200)
    expect(answer.field('ratelimit')).toMatch(/"default-(App\.)?GET-x";r=2;t=60/)
  })

  it('private limits of two routes, and of two methods, never share a count', async () => {
    const store = memoryStore()
    const limits = { limit: 1, window: '1m', store } as const
    const app = await start({
      routes: [
        { path: '/x', limits },
        { path: '/y', limits },
        { method: 'POST', path: '/x', limits },
      ],
    })

    expect(await app.statuses(2, '/x')).toEqual([200, 429])
    expect(await app.statuses(2, '/y')).toEqual([200, 429])
    expect(await app.statuses(2, '/x', { method: 'POST' })).toEqual([200, 429])
  })

  it('a named limit is one quota on all its routes', async () => {
    const store = memoryStore()
    const limits = { name: 'exports', limit: 3, window: '1m', store } as const
    const app = await start({
      routes: [
        { path: '/x', limits },
        { path: '/y', limits: { ...limits, cost: 2 } },
      ],
    })

    expect(await app.statuses(1, '/x')).toEqual([200])
    expect((await app.ask('/y')).field('ratelimit')).toBe('"exports";r=0;t=60')
    expect(await app.statuses(1, '/x')).toEqual([429])
  })

  it('a named limit is shared by two applications, and by a limiter without HTTP', async () => {
    const store = memoryStore()
    const limits = { name: 'api', limit: 3, window: '1m', store, key: byConstant } as const
    const one = await start({ limits: [limits] })
    const two = await start({ limits: [limits] })
    const limiter = createLimiter({ name: 'api', limit: 3, window: '1m', store })

    expect(await one.statuses(2)).toEqual([200, 200])
    expect((await limiter.consume('everybody')).allowed).toBe(true)
    expect(await two.statuses(1)).toEqual([429])
    await limiter.reset('everybody')
    expect(await two.statuses(1)).toEqual([200])
  })

  it('private limits of two applications on one store never share a count', async () => {
    const store = memoryStore()
    const limits = { limit: 1, window: '1m', store, key: byConstant } as const
    const one = await start({ limits: [limits] })
    const two = await start({ limits: [limits] })

    expect(await one.statuses(2)).toEqual([200, 429])
    expect(await two.statuses(2)).toEqual([200, 429])
  })

  it('one name with two windows is an error', async () => {
    const store = memoryStore()
    const limits = { name: 'api', limit: 3, store } as const
    const both = [
      { ...limits, window: '1m' },
      { ...limits, window: '1h' },
    ] as const
    await expect(driver.start({ limits: both })).rejects.toMatchObject({
      code: 'SLUICE_POLICY_CONFLICT',
    })
  })
}
