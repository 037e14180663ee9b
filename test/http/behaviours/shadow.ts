import { createLimiter, memoryStore, type ShadowEvent } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'
import type { Limits, NativeRequest } from '../../adapters/drivers/driver.ts'
import { until } from '../../support/until.ts'

const shadow = { name: 'new', limit: 1, window: '1m', mode: 'shadow' } as const
const enforced = { name: 'default', limit: 100, window: '1m', algorithm: 'fixed-window' } as const

/** Policies that are tried out: told of, and nothing that a client could see. */
export const shadows: Behaviour = ({ limited, start }) => {
  function told() {
    const outcomes: string[] = []
    const onShadow = (event: ShadowEvent) => {
      for (const { policy, allowed } of event.outcomes) outcomes.push(`${policy.name} ${allowed}`)
    }
    return { onShadow, outcomes }
  }

  it('H12: shows nothing of a policy in shadow, and refuses nothing', async () => {
    const { onShadow, outcomes } = told()
    const app = await limited({
      ...shadow,
      observers: { onShadow },
      exposeHeaders: true,
      hideOnRedirect: true,
    })
    for (let i = 0; i < 3; i += 1) {
      const answer = await app.ask()
      expect(answer.status).toBe(200)
      expect(limitFields(answer)).toEqual({})
      expect(answer.field('access-control-expose-headers')).toBeUndefined()
    }

    expect(outcomes).toEqual(['new true', 'new false', 'new false'])
  })

  it('H13: shows only the policy that is enforced beside it', async () => {
    const { onShadow, outcomes } = told()
    const policies = [{ ...shadow, limit: 0 }, enforced]
    const answer = await (await limited({ policies, observers: { onShadow } })).ask()

    expect(limitFields(answer)).toEqual({
      'ratelimit-policy': '"default";q=100;w=60',
      ratelimit: '"default";r=99;t=60',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': '1795195861',
    })
    expect(outcomes).toEqual(['new false'])
  })

  it('names in a refusal only the policies that are enforced', async () => {
    const policies = [{ ...shadow, limit: 0, window: '1h' } as const, { ...enforced, limit: 0 }]
    const answer = await (await limited({ policies })).ask()

    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.body)['violated-policies']).toEqual(['default'])
    expect(answer.field('retry-after')).toBeUndefined()
  })

  it('leaves the dialect of a later limiter alone', async () => {
    const app = await start({
      limits: [
        { ...shadow, headers: ['draft-6'] },
        { ...enforced, headers: ['draft-7'] },
      ],
    })

    expect((await app.ask()).field('ratelimit')).toBe('limit=100, remaining=99, reset=60')
  })

  it.each<[string, Limits['enforce'] & object]>([
    ['a function', ({ headers }: NativeRequest) => headers['x-tenant'] === 'beta'],
    ['an async function', async ({ headers }: NativeRequest) => headers['x-tenant'] === 'beta'],
  ])('is enforced for the requests that %s chooses', async (_, enforce) => {
    const { onShadow, outcomes } = told()
    const app = await limited({
      name: 'new',
      limit: 1,
      window: '1m',
      enforce,
      observers: { onShadow },
      key: ({ headers }) => String(headers['x-tenant']),
    })
    const beta = await app.statuses(2, '/', { headers: { 'x-tenant': 'beta' } })
    const others = await app.statuses(2, '/', { headers: { 'x-tenant': 'alpha' } })

    expect([beta, others]).toEqual([
      [200, 429],
      [200, 200],
    ])
    expect(outcomes).toEqual(['new true', 'new false'])
  })

  it('is enforced where such a function says neither, and that is reported', async () => {
    const onInvalid = vi.fn()
    const enforce = () => undefined as never
    const app = await limited({
      name: 'new',
      limit: 1,
      window: '1m',
      enforce,
      observers: { onInvalid },
    })

    expect(await app.statuses(2)).toEqual([200, 429])
    expect(onInvalid).toHaveBeenCalledTimes(2)
    expect(onInvalid).toHaveBeenLastCalledWith({
      code: 'SLUICE_ANSWER_INVALID',
      message: expect.stringContaining("enforce of 'new': its function must answer true or false"),
    })
  })

  it('hands on to the error handling what such a function throws', async () => {
    const enforce = async () => Promise.reject(new Error('no tenant'))
    const app = await limited({ limit: 1, window: '1m', enforce })

    expect([(await app.ask()).status, (await app.ask()).body]).toEqual([500, 'no tenant'])
  })

  it.each(['deny', 'error'] as const)(
    "refuses nothing for a key that only policies on trial need, with onMissingKey '%s'",
    async (onMissingKey) => {
      const policies = [
        { ...shadow, key: () => undefined },
        { ...enforced, key: () => 'ada' },
      ]
      const app = await limited({ policies, onMissingKey })

      expect((await app.ask()).field('ratelimit')).toBe('"default";r=99;t=60')
    },
  )

  it('frees the leases that it lent when a response is over', async () => {
    const { onShadow, outcomes } = told()
    const inFlight = {
      name: 'inflight',
      algorithm: 'concurrency',
      limit: 1,
      store: memoryStore(),
    } as const
    const limiter = createLimiter(inFlight)
    const app = await limited({
      ...inFlight,
      key: () => 'ada',
      mode: 'shadow',
      observers: { onShadow },
    })
    for (let i = 0; i < 3; i += 1) {
      expect((await app.ask()).status).toBe(200)
      await until('the lease has ended', async () => (await limiter.peek('ada')).allowed === true)
    }

    expect(outcomes).toEqual(Array(3).fill('inflight true'))
  })

  it('counts what is settled after the response too', async () => {
    const { onShadow, outcomes } = told()
    const over = vi.fn(() => true)
    const refunded = await limited({ ...shadow, observers: { onShadow }, refundWhen: over })
    for (let i = 1; i <= 3; i += 1) {
      await refunded.ask()
      await until('the response is over', () => over.mock.calls.length === i)
    }
    const charged = {
      ...shadow,
      limit: 3,
      observers: { onShadow },
      chargeWhen: over,
      store: memoryStore(),
    }
    const app = await start({
      limits: [charged],
      routes: [{ path: '/', reached: ({ rateLimit }) => rateLimit?.charge(1) }],
    })
    for (let i = 4; i <= 6; i += 1) {
      await app.ask()
      await until('the response is over', () => over.mock.calls.length === i)
    }

    expect(outcomes).toEqual([
      ...Array(3).fill('new true'),
      ...['new true', 'new true', 'new false'],
    ])
  })
}
