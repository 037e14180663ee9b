import { memoryStore, type ShadowEvent } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import type { Hold } from '@sluice/http/adapter'
import { describe, expect, it, vi } from 'vitest'
import { type Client, clientsOf } from './exchange.ts'

const shadow = { name: 'new', limit: 1, window: '1m', mode: 'shadow' } as const
const enforced = { name: 'default', limit: 100, window: '1m', algorithm: 'fixed-window' } as const

function told() {
  const outcomes: string[] = []
  const onShadow = vi.fn((event: ShadowEvent) => {
    for (const { policy, allowed } of event.outcomes) outcomes.push(`${policy.name} ${allowed}`)
  })
  return { observers: { onShadow }, outcomes }
}

/** Ends a response. The store is asked about shadows after it has answered. */
async function finish(hold: Hold | undefined): Promise<void> {
  hold?.finish(200)
  await new Promise(setImmediate)
}

describe('a policy in shadow', () => {
  it('H12: shows nothing, refuses nothing, and reports the request and its key', async () => {
    const { observers, outcomes } = told()
    const own = { key: () => 'ada', exposeHeaders: true, hideOnRedirect: true }
    const { ask } = clientsOf({ ...shadow, ...own, observers })
    for (let i = 0; i < 3; i += 1) {
      expect(await ask({ 'x-a': '1' })).toMatchObject({ status: 200, fields: {} })
      expect((await ask()).fields).toEqual({})
    }

    expect(outcomes).toEqual(['new true', ...Array(5).fill('new false')])
    expect(observers.onShadow.mock.calls[0]?.[0]).toMatchObject({
      ...{ request: { headers: { 'x-a': '1' } }, checks: [{ identity: 'ada' }] },
    })
  })

  it('H13: leaves the headers to the enforced policy', async () => {
    const { observers, outcomes } = told()
    const policies = [{ ...shadow, limit: 0 }, enforced]
    const { ask } = clientsOf({ policies, observers, headers: ['draft-11', 'legacy-delta'] })

    expect((await ask()).fields).toEqual({
      ...{ 'RateLimit-Policy': '"default";q=100;w=60', RateLimit: '"default";r=99;t=60' },
      ...{ 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '99', 'X-RateLimit-Reset': '60' },
    })
    expect(outcomes).toEqual(['new false'])
  })

  it.each(['deny', 'error'] as const)(
    "refuses nothing for a key that it alone needs, with onMissingKey '%s'",
    async (onMissingKey) => {
      const keyless = { ...shadow, key: () => undefined }
      const policies = [keyless, { ...enforced, key: () => 'ada' }]
      const { fields } = await clientsOf({ policies, onMissingKey }).ask()
      expect(fields.RateLimit).toBe('"default";r=99;t=60')
    },
  )

  it('releases its leases when a response ends', async () => {
    const { observers, outcomes } = told()
    const leases = { name: 'inflight', algorithm: 'concurrency', limit: 1 } as const
    const { ask } = clientsOf({ ...leases, mode: 'shadow', observers })
    for (let i = 0; i < 3; i += 1) await finish((await ask()).hold)
    expect(outcomes).toEqual(Array(3).fill('inflight true'))
  })

  it('is settled after the response too', async () => {
    const { observers, outcomes } = told()
    const refunded = clientsOf({ ...shadow, observers, refundWhen: () => true })
    for (let i = 0; i < 3; i += 1) await finish((await refunded.ask()).hold)
    expect(outcomes).toEqual(Array(3).fill('new true'))

    const charged = { ...shadow, limit: 3, store: memoryStore(), chargeWhen: () => true }
    const { ask } = clientsOf({ ...charged, observers })
    for (let i = 0; i < 3; i += 1) {
      const { decision, hold } = await ask()
      decision?.charge(1)
      await finish(hold)
    }
    expect(outcomes.slice(3)).toEqual(['new true', 'new true', 'new false'])
  })
})

describe('a policy with enforce', () => {
  const own = { name: 'new', limit: 1, window: '1m' } as const
  const isBeta = ({ headers }: Client) => headers.tenant === 'beta'

  it.each<[string, GuardFields<Client>['enforce'] & object]>([
    ['a function', isBeta],
    ['an async function', async (client: Client) => isBeta(client)],
  ])('is enforced for the requests that %s chooses', async (_, enforce) => {
    const { observers, outcomes } = told()
    const key = ({ headers }: Client) => headers.tenant
    const { statuses } = clientsOf({ ...own, enforce, observers, key })

    expect(await statuses(2, { tenant: 'beta' })).toEqual([200, 429])
    expect(await statuses(2, { tenant: 'alpha' })).toEqual([200, 200])
    expect(outcomes).toEqual(['new true', 'new false'])
  })

  it('is enforced if the function returns neither, which is reported', async () => {
    const onInvalid = vi.fn()
    const enforce = () => undefined as never
    const { statuses } = clientsOf({ ...own, enforce, observers: { onInvalid } })

    expect(await statuses(2)).toEqual([200, 429])
    expect(onInvalid).toHaveBeenCalledTimes(2)
    expect(onInvalid).toHaveBeenLastCalledWith({
      code: 'SLUICE_ANSWER_INVALID',
      message: expect.stringContaining("enforce of 'new': its function must return true or false"),
    })
  })
})
