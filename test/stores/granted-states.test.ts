import { definePolicy, type GrantCheck, type Granted, type Outcome } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkOf } from '../support/patient-limiter.ts'
import { mapDriver, memoryDriver, type OpenedStore, serverOf } from './store-drivers.ts'

const start = 1_795_195_800_000
const policy = definePolicy({ name: 'hot', limit: 10, window: '1m', prefetch: '6s' }, '')

describe.each([memoryDriver, mapDriver])('the grants of a key in $name', (driver) => {
  const server = serverOf(driver)
  let opened: OpenedStore
  let now: number

  beforeEach(async () => {
    now = start
    opened = await server.open(() => now)
  })
  afterEach(() => opened.close())

  async function grant(
    id: number,
    units: number,
    { limit, ...own }: Partial<GrantCheck['terms']> & { limit?: number } = {},
  ): Promise<Granted | undefined> {
    const terms = { id, lifeMs: 6_000, divisor: 1, closed: [], ...own }
    const check = checkOf(policy, { cost: units, ...(limit && { limit }) })
    return (await opened.store.grant?.([{ ...check, terms }]))?.[0]
  }

  async function ask(
    op: 'consume' | 'peek' | 'charge',
    own: { cost?: number; limit?: number } = {},
  ): Promise<Outcome | undefined> {
    return (await opened.store.apply(op, [checkOf(policy, own)]))[0]
  }

  /** The units that are left so many ms after the start. */
  async function leftAt(ms: number): Promise<number | undefined> {
    now = start + ms
    return (await ask('peek'))?.remaining
  }

  it('end when their lives end, also if the clock is set back meanwhile', async () => {
    await grant(1, 3, { lifeMs: 1_000 })
    await grant(2, 2)
    // No life is longer than a tenth of the window, so the second one ends in six seconds from now.
    expect(await leftAt(-3_000)).toBe(5)
    expect(await ask('charge')).toMatchObject({ remaining: 4 })
    expect(await leftAt(56_999)).toBe(4)
    expect(await leftAt(57_000)).toBe(5)
    expect(await leftAt(60_999)).toBe(5)
    expect(await leftAt(61_000)).toBe(8)
    expect(await leftAt(62_999)).toBe(8)
    expect(await leftAt(63_000)).toBe(10)
  })

  it('are in the order of their ends, whichever came first', async () => {
    const grants = [
      { units: 1, lifeMs: 3_000 },
      { units: 2, lifeMs: 1_000 },
      { units: 1, lifeMs: 2_000 },
      { units: 3, lifeMs: 1_000 },
    ]
    for (const [id, { units, lifeMs }] of grants.entries()) await grant(id, units, { lifeMs })
    // Two have ended, and are recorded. The others are held, until they come back.
    expect(await leftAt(1_500)).toBe(3)
    const closed = [0, 1, 2, 3].map((id) => ({ id, spent: 0 }))
    expect(await grant(9, 0, { closed })).toMatchObject({ units: 0, remaining: 5 })
    expect(await leftAt(60_999)).toBe(5)
    expect(await leftAt(61_000)).toBe(10)
  })

  it('hold units until those that have to leave do', async () => {
    await grant(1, 3, { lifeMs: 1_000 })
    await grant(2, 5)
    const waits = [2, 3, 5, 6, 10].map(async (cost) => (await ask('peek', { cost }))?.retryAfterMs)
    expect(await Promise.all(waits)).toEqual([0, 61_000, 61_000, 66_000, 66_000])
  })

  it('are one for a call that comes twice, and none for no units', async () => {
    await grant(1, 2)
    const closed = [{ id: 1, spent: 1 }]
    for (let i = 0; i < 2; i += 1) {
      expect(await grant(2, 4, { closed })).toMatchObject({ units: 4, remaining: 5 })
    }
    expect(await grant(3, 0)).toMatchObject({ units: 0, remaining: 5 })
    expect(await grant(4, 9, { closed: [{ id: 3, spent: 9 }] })).toMatchObject({ units: 5 })
  })

  it('are a thousand at most', async () => {
    for (let id = 1; id <= 1_000; id += 1) {
      expect((await grant(id, 1, { limit: 2_000 }))?.units).toBe(1)
    }
    expect(await grant(1_001, 1, { limit: 2_000 })).toMatchObject({ units: 0, remaining: 1_000 })
  })

  it('are recorded whole at their ends, whatever the limit is by then', async () => {
    await grant(1, 8)
    now += 6_000
    expect(await ask('consume', { limit: 3 })).toMatchObject({ allowed: false, remaining: 0 })
    expect(await ask('consume')).toMatchObject({ allowed: true, remaining: 1 })
    expect(await leftAt(65_999)).toBe(1)
    expect(await leftAt(66_000)).toBe(10)
  })

  it('stay held after a reset, but for those that are returned', async () => {
    await grant(1, 2)
    await grant(2, 3)
    await ask('consume')
    const reset = (...closed: number[]) =>
      opened.store.change({
        op: 'reset',
        checks: [{ ...checkOf(policy), closed: closed.map((id) => ({ id, spent: 0 })) }],
      })
    expect(await reset(1)).toEqual([true])
    expect(await leftAt(0)).toBe(7)
    expect(await reset()).toEqual([false])
    expect(await reset(2)).toEqual([true])
    expect(await leftAt(0)).toBe(10)
    expect(await reset(2)).toEqual([false])
  })
})
