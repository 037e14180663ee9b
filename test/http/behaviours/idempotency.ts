import { createLimiter, type DecisionEvent, memoryStore } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { Limits, NativeRequest } from '../../adapters/drivers/driver.ts'
import { until } from '../../support/until.ts'

const policy = { name: 'posts', limit: 5, window: '1m', algorithm: 'fixed-window' } as const
const uuid = '8e03978e-40d5-43e8-bc93-6894a57f9324'

/** Retries of one request, which are charged once. */
export const idempotentRetries: Behaviour = ({ start }) => {
  async function counted(limits: Partial<Limits> = {}) {
    const store = memoryStore()
    const limiter = createLimiter({ ...policy, store })
    const routes = (['POST', 'PUT'] as const).flatMap((method) =>
      ['/jobs', '/other'].map((path) => ({
        method,
        path,
        answer: { status: ({ headers }: NativeRequest) => Number(headers['x-status'] ?? 200) },
      })),
    )
    const key = ({ headers }: NativeRequest) => String(headers['x-user'] ?? 'ada')
    const app = await start({
      limits: [{ ...policy, store, key, idempotencyKey: true, ...limits }],
      routes,
    })
    return {
      app,
      post: (idempotencyKey?: string, more: Record<string, string> = {}, path = '/jobs') =>
        app.ask(path, {
          method: 'POST',
          headers: idempotencyKey ? { 'idempotency-key': idempotencyKey, ...more } : more,
        }),
      used: async (user = 'ada') => 5 - ((await limiter.peek(user)).outcomes[0]?.remaining ?? 0),
    }
  }

  it('I04: charges a retry nothing, and shows the limits of this request', async () => {
    const { post, used } = await counted()
    expect((await post(`"${uuid}"`)).field('ratelimit')).toBe('"posts";r=4;t=60')
    await post()
    const retry = await post(`"${uuid}"`)

    expect(retry.status).toBe(200)
    expect(retry.field('ratelimit')).toBe('"posts";r=3;t=60')
    expect(retry.field('ratelimit-policy')).toBe('"posts";q=5;w=60')
    expect(await used()).toBe(2)
  })

  it('lets a retry pass when nothing is left', async () => {
    const { post } = await counted()
    await post(uuid)
    for (let i = 0; i < 4; i += 1) await post()

    expect((await post()).status).toBe(429)
    expect((await post(uuid)).status).toBe(200)
  })

  it('I05: does not remember a request that was refused', async () => {
    const { post, used } = await counted()
    for (let i = 0; i < 5; i += 1) await post()
    expect((await post(uuid)).status).toBe(429)
    vi.setSystemTime(Date.now() + 60_000)

    expect((await post(uuid)).field('ratelimit')).toBe('"posts";r=4;t=60')
    expect(await used()).toBe(1)
  })

  it.each([
    ['without its quotes', `"${uuid}"`, uuid],
    ['with escapes', '"a\\"b\\\\"', 'a"b\\'],
    ['with space around it', `"${uuid}"`, `  "${uuid}" `],
  ])('I07: knows a key %s', async (_, one, other) => {
    const { post, used } = await counted()
    await post(one)
    await post(other)

    expect(await used()).toBe(1)
  })

  it.each<[string, string, Record<string, string>, string]>([
    ['another key', 'k2', {}, '/jobs'],
    ['another path', 'k1', {}, '/other'],
    ['no key', '', {}, '/jobs'],
    ['a blank key', '   ', {}, '/jobs'],
  ])('charges a request with %s', async (_, key, more, path) => {
    const { post, used } = await counted()
    await post('k1')
    await post(key, more, path)

    expect(await used()).toBe(2)
  })

  it('charges a request with another method, and that of somebody else', async () => {
    const { app, post, used } = await counted()
    await post('k1')
    await app.ask('/jobs', { method: 'PUT', headers: { 'idempotency-key': 'k1' } })
    expect(await used()).toBe(2)
    await post('k1', { 'x-user': 'bob' })

    expect(await used('bob')).toBe(1)
  })

  it('is no way around a limit: with one key as many are free as there may be retries', async () => {
    const { post, used } = await counted()
    const statuses = []
    for (let i = 0; i < 12; i += 1) statuses.push((await post('k')).status)

    expect(statuses).toEqual([...Array(8).fill(200), ...Array(4).fill(429)])
    expect(await used()).toBe(5)
  })

  it('is none for requests at once either', async () => {
    const { post, used } = await counted()
    const statuses = (await Promise.all(Array.from({ length: 100 }, () => post('k')))).map(
      ({ status }) => status,
    )

    expect(statuses.filter((status) => status === 200)).toHaveLength(8)
    expect(await used()).toBe(5)
  })

  it('forgets a key with the window', async () => {
    const { post, used } = await counted()
    await post('k')
    vi.setSystemTime(Date.now() + 60_000)
    await post('k')

    expect(await used()).toBe(1)
  })

  it('charges the retry of a request whose charge was given back', async () => {
    const { post, used } = await counted({ refundWhen: (_, { status }) => status >= 500 })
    await post('k', { 'x-status': '503' })
    await until('the units are settled', async () => (await used()) === 0)
    await post('k')
    await post('k')

    expect(await used()).toBe(1)
  })

  it('takes any resolver', async () => {
    const idempotencyKey = async ({ headers }: NativeRequest) => headers['x-request-id']?.toString()
    const { post, used } = await counted({ idempotencyKey })
    for (let i = 0; i < 3; i += 1) await post(undefined, { 'x-request-id': 'r1' })

    expect(await used()).toBe(1)
  })

  it('has a retry in flight like any other request', async () => {
    const policies = [policy, { name: 'inflight', algorithm: 'concurrency', limit: 1 }] as const
    const app = await start({ limits: [{ policies, idempotencyKey: true }] })
    const headers = { 'idempotency-key': 'k' }
    for (let i = 0; i < 2; i += 1) {
      const { status, lines } = await app.ask('/', { headers })
      expect(status).toBe(200)
      expect(lines).toContainEqual(['ratelimit', '"posts";r=4;t=60, "inflight";r=0'])
    }
  })

  it('tells its observer of a retry like of any other request, and of nothing else', async () => {
    const onDecision = vi.fn<(event: DecisionEvent) => void>()
    const { post } = await counted({ observers: { onDecision } })
    await post('k')
    await post('k')

    const seen = onDecision.mock.calls.map(([{ decision, checks }]) => [
      decision.outcomes.map(({ policy }) => policy.name),
      checks.map(({ policy, cost }) => `${policy.name} ${cost}`),
    ])
    expect(seen).toEqual([
      [['posts'], ['posts 1']],
      [['posts'], ['posts 0']],
    ])
  })

  it('is known to each limiter by itself', async () => {
    const store = memoryStore()
    const names = ['one', 'two']
    const app = await start({
      limits: names.map((name) => ({ ...policy, name, store, idempotencyKey: true })),
    })
    const headers = { 'idempotency-key': 'k' }
    for (let i = 0; i < 2; i += 1) {
      expect((await app.ask('/', { headers })).field('ratelimit')).toBe(
        '"one";r=4;t=60, "two";r=4;t=60',
      )
    }
  })
}
