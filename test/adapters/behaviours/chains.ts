import { memoryStore } from '@sluice/core'
import { expect, it } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { Limits } from '../drivers/driver.ts'

const fixed = { window: '1m', algorithm: 'fixed-window' } as const

/** Several limiters on one response. */
export const chains: Behaviour = ({ start }) => {
  it('describes the tightest of all where there is room for one only', async () => {
    const headers: Limits['headers'] = ['draft-7', 'legacy-delta']
    const app = await start({
      limits: [
        { name: 'tight', limit: 5, ...fixed, headers },
        { name: 'loose', limit: 1000, ...fixed, headers },
      ],
    })

    const fields = limitFields(await app.ask())

    expect(fields.ratelimit).toBe('limit=5, remaining=4, reset=60')
    expect(fields['x-ratelimit-limit']).toBe('5')
    expect(fields['ratelimit-policy']).toBe('5;w=60, 1000;w=60')
  })

  it('H02: one named policy twice is one item, with the lower remaining', async () => {
    const store = memoryStore()
    const shared = { name: 'api', limit: 10, ...fixed, store }
    const app = await start({ limits: [shared, { ...shared, cost: 2 }] })

    const answer = await app.ask()

    expect(answer.field('ratelimit-policy')).toBe('"api";q=10;w=60')
    expect(answer.field('ratelimit')).toBe('"api";r=7;t=60')
  })

  it('H02: two private policies have two names', async () => {
    const app = await start({
      limits: [
        { limit: 10, ...fixed },
        { limit: 20, ...fixed },
      ],
    })

    const answer = await app.ask()

    expect(answer.field('ratelimit-policy')).toBe('"default";q=10;w=60, "default-2";q=20;w=60')
  })

  it('H02: a private policy makes way for one that the user named so', async () => {
    const app = await start({
      limits: [
        { limit: 10, ...fixed },
        { name: 'default', limit: 20, ...fixed },
      ],
    })

    const answer = await app.ask()

    expect(answer.field('ratelimit-policy')).toBe('"default-2";q=10;w=60, "default";q=20;w=60')
  })

  it('speaks one generation only: that of the first', async () => {
    const app = await start({
      limits: [
        { name: 'first', limit: 10, ...fixed, headers: ['draft-6'] },
        { name: 'second', limit: 5, ...fixed, headers: ['draft-11', 'legacy'] },
      ],
    })

    expect(limitFields(await app.ask())).toEqual({
      'ratelimit-policy': '10;w=60, 5;w=60',
      'ratelimit-limit': '5',
      'ratelimit-remaining': '4',
      'ratelimit-reset': '60',
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '4',
      'x-ratelimit-reset': '1795195861',
    })
  })

  it('tells nothing of a limiter without headers when another has some', async () => {
    const app = await start({
      limits: [
        { name: 'login', limit: 3, ...fixed, headers: [] },
        { name: 'api', limit: 10, ...fixed, headers: ['draft-11'] },
      ],
    })
    await app.statuses(3)
    expect(limitFields(await app.ask())).toEqual({ 'retry-after': '60' })

    const other = await app.ask('/', { from: '127.0.0.2' })
    expect(limitFields(other)).toEqual({
      'ratelimit-policy': '"api";q=10;w=60',
      ratelimit: '"api";r=9;t=60',
    })
  })

  it('says nothing new when a later limiter skips', async () => {
    const app = await start({
      limits: [
        { name: 'first', limit: 3, ...fixed },
        { name: 'second', limit: 3, ...fixed, skip: () => true },
      ],
    })

    expect((await app.ask()).field('ratelimit-policy')).toBe('"first";q=3;w=60')
  })
}
