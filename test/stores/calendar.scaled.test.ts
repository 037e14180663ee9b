import { redisStore } from '@sluice/redis'
import fc from 'fast-check'
import { describe, expect, vi } from 'vitest'
import { checkOf, patientLimiter } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'
import { scaled } from '../support/scale.ts'
import { calendarWindow } from './oracle/calendar-window.ts'
import { memoryDriver, packedDriver, serverOf } from './store-drivers.ts'
import { policyOf } from './traces.ts'

const dayMs = 86_400_000
const dayInRome = { every: 'day', zone: 'Europe/Rome' } as const
const fixed = { name: 'p', algorithm: 'fixed-window' } as const

/** Zones whose clocks change at noon, at midnight, over midnight, by half an hour, by two hours, or by a day. */
const zones = [
  'UTC',
  'Europe/Rome',
  'America/New_York',
  'America/Sao_Paulo',
  'America/Havana',
  'America/Asuncion',
  'America/St_Johns',
  'America/Nuuk',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Asia/Beirut',
  'Asia/Tehran',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Antarctica/Troll',
  'Pacific/Apia',
  'Pacific/Chatham',
]

/** Changes of clocks: over midnight in Beirut and Cairo, twice midnight in Havana and St. John's, and the day that Apia left out. */
const changes = {
  'Asia/Beirut': '2024-03-31',
  'Africa/Cairo': '2024-04-26',
  'America/Havana': '2023-11-05',
  'America/St_Johns': '2009-11-01',
  'Pacific/Apia': '2011-12-30',
  'America/Sao_Paulo': '2018-11-04',
}

describe.each([memoryDriver, packedDriver])('windows of the calendar ($name)', (driver) => {
  const server = serverOf(driver)

  it('are those that a clock on the wall shows', { timeout: 120_000 }, async () => {
    const near = fc
      .tuple(
        fc.constantFrom(...Object.values(changes)),
        fc.integer({ min: -2 * dayMs, max: 3 * dayMs }),
      )
      .map(([date, ms]) => Date.parse(date) + ms)
    const cases = fc.record({
      every: fc.constantFrom('day', 'week', 'month'),
      zone: fc.constantFrom(...zones),
      at: fc.oneof(near, fc.integer({ min: Date.UTC(2005, 0), max: Date.UTC(2035, 0) })),
    })
    const law = fc.asyncProperty(cases, async ({ at, ...window }) => {
      let now = at
      const { store, close } = await server.open(() => now)
      const policy = policyOf({ ...fixed, limit: 2, window })
      const ask = async (cost: number) => {
        const [outcome] = await store.apply('consume', [checkOf(policy, { cost })])
        return { allowed: outcome?.allowed, endsAt: now + (outcome?.resetMs ?? Number.NaN) }
      }
      const { start, end } = calendarWindow(window, at)
      expect(await ask(0)).toEqual({ allowed: true, endsAt: end })
      expect(await ask(2)).toEqual({ allowed: true, endsAt: end })
      expect(await ask(1)).toEqual({ allowed: false, endsAt: end })
      now = end - 1
      expect(await ask(1)).toEqual({ allowed: false, endsAt: end })
      now = end
      expect(await ask(2)).toEqual({ allowed: true, endsAt: calendarWindow(window, end).end })
      now = start
      await close()
    })
    const numRuns = driver === memoryDriver ? scaled(90, 2_000) : scaled(30, 300)
    const around = Object.entries(changes).flatMap(([zone, date]) =>
      [-12, 1, 12].map((hours) => ({ zone, at: Date.parse(date) + hours * 3_600_000 })),
    )
    const examples = around.map((one): [typeof one & { every: 'day' }] => [
      { every: 'day', ...one },
    ])
    await fc.assert(law, { numRuns, examples })
  })

  it('hold what work reserves until they end', async () => {
    let now = Date.parse('2026-10-24T22:00:00Z')
    const { store, close } = await server.open(() => now)
    const limiter = patientLimiter({
      store,
      policies: [{ ...fixed, limit: 2 ** 40, reserve: true, window: dayInRome }],
    })
    const budget = await limiter.reserve('k', { units: 2 ** 39, step: 0 })
    budget.spend(5)
    await budget.settle()
    // The clocks are set back in this night.
    expect((await limiter.peek('k')).outcomes).toMatchObject([
      { remaining: 2 ** 40 - 5, resetMs: 25 * 3_600_000 },
    ])
    now += 25 * 3_600_000
    expect((await limiter.peek('k')).outcomes).toMatchObject([{ remaining: 2 ** 40 }])
    await close()
  })
})

it('are chosen by the clock of Redis, whatever the clocks of the processes say', async ({
  client,
}) => {
  const ask = async (skewMs: number) => {
    const time = Date.now()
    const clock = vi.spyOn(Date, 'now').mockReturnValue(time + skewMs)
    const store = redisStore(client, { heartbeatMs: 0, denialTtlMs: 0 })
    const check = checkOf(policyOf({ ...fixed, limit: 9, window: dayInRome }))
    try {
      const [outcome] = await store.apply('consume', [check])
      const endsInMs = calendarWindow(dayInRome, time).end - time
      expect(Math.abs((outcome?.resetMs ?? 0) - endsInMs)).toBeLessThan(60_000)
      return outcome?.remaining
    } finally {
      clock.mockRestore()
      await store.close?.()
    }
  }
  const answers: unknown[] = []
  for (const hours of [0, -20, 20, -12, 12]) answers.push(await ask(hours * 3_600_000))
  expect(answers).toEqual([8, 7, 6, 5, 4])
  for (const days of [-3, 3]) {
    await expect(ask(days * dayMs)).rejects.toThrow('differ by more than a window')
  }
})
