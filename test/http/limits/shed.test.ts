import type { InvalidEvent } from '@sluice/core'
import type { GuardFields, ShedOptions } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { raise } from '../../support/raise.ts'
import { type Client, clientsOf, exchange, guardOf, now } from '../exchange.ts'
import { errorOf, type Wrong } from '../wrong-options.ts'
import { turns } from './plant.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 1_795_195_800_250 }))
afterEach(() => void vi.useRealTimers())

const classes = ['batch', 'normal', 'critical']
const classOf = (request: object) => (request as { class?: unknown }).class as string

function shedder(shed: Partial<ShedOptions<object>>, more: GuardFields<object> = {}) {
  const onInvalid = vi.fn<(event: InvalidEvent) => void>()
  const guard = guardOf({
    limit: 1_000_000,
    window: '1m',
    observers: { onInvalid },
    shed: { signal: () => 0, low: 10, high: 20, priority: classOf, classes, ...shed },
    ...more,
  })
  function passes(name: unknown): boolean {
    const passage = now(guard.check({ ...exchange(), native: { class: name } }) as never)
    return passage.verdict.action === 'pass'
  }
  /** The classes that pass, so much later. */
  function passing(ms: number): readonly string[] {
    vi.setSystemTime(Date.now() + ms)
    return classes.filter(passes)
  }
  function seconds(count: number): readonly (readonly string[])[] {
    return Array.from({ length: count }, () => passing(1_000))
  }
  return { passes, passing, seconds, onInvalid }
}

describe('under pressure', () => {
  it('one class is shed at a time, even if the signal jumps, and returns afterwards', () => {
    let busy = 5
    const { passing, seconds } = shedder({ signal: () => busy })
    seconds(5)
    busy = 1_000
    const going = seconds(20)
    expect(going.slice(0, 3).map(({ length }) => length)).toEqual([2, 2, 2])
    expect(going.at(-1)).toEqual(['critical'])
    busy = 1
    const back = seconds(40).map((passing) => passing.length)
    expect(back).toEqual([...back].sort())
    expect(new Set(back)).toEqual(new Set([1, 2, 3]))
    // After a pause they are back at once.
    busy = 1_000
    seconds(30)
    busy = 0
    expect(passing(3_600_000)).toEqual(classes)
  })

  it('a class does not flap while the signal oscillates around a threshold', () => {
    let second = 0
    const { seconds } = shedder({ signal: () => (second++ % 2 ? 12 : 18.5) })
    const passing = seconds(300).map(({ length }) => length)
    expect(turns(passing)).toBe(0)
  })

  it('a class is refused for as long as its clients were told to wait', () => {
    let busy = 1_000
    const two = { smoothing: 1, retryAfter: '30s', classes: ['batch', 'critical'] } as const
    const { passing } = shedder({ signal: () => busy, ...two })
    passing(1_000)
    expect(passing(1_000)).not.toContain('batch')
    busy = 0
    for (let second = 0; second < 29; second += 1) expect(passing(1_000)).not.toContain('batch')
    expect(passing(1_000)).toContain('batch')
  })

  it.each(['Critical', 'toString', '__proto__', 2, {}, true])(
    'an invalid priority of %s counts as the least important, and is reported',
    (name) => {
      const { seconds, passes, onInvalid } = shedder({ signal: () => 15.1 })
      expect(seconds(10).at(-1)).toEqual(['normal', 'critical'])
      onInvalid.mockClear()
      // A request without a priority is reported to nobody.
      expect([undefined, null, '', name].map(passes)).toEqual([false, false, false, false])
      expect(onInvalid).toHaveBeenCalledExactlyOnceWith({
        code: 'SLUICE_PRIORITY_UNKNOWN',
        message: expect.stringMatching(/^shed.priority: there is no class .*'batch' was used/),
      })
    },
  )

  it('the priority is read only under pressure', () => {
    const priority = vi.fn(classOf)
    let busy = 0
    const { seconds } = shedder({ signal: () => busy, priority })
    seconds(10)
    expect(priority).not.toHaveBeenCalled()
    busy = 1_000
    seconds(10)
    expect(priority).toHaveBeenCalled()
  })

  it('nothing changes while the signal throws, which is reported', () => {
    let signal = (): number => 1_000
    const { seconds, onInvalid } = shedder({ signal: () => signal() })
    const before = seconds(10).at(-1)
    signal = () => raise('gone')
    for (const passing of seconds(10)) expect(passing).toEqual(before)
    expect(onInvalid).toHaveBeenCalledWith({
      code: 'SLUICE_SIGNAL_INVALID',
      message: expect.stringMatching(/^signal .* of shed: threw: 'gone'/),
    })
  })

  it('a more important class always passes where a less important one does, whatever the signal', () => {
    const ranks = fc.integer({ min: 2, max: 6 })
    const step = fc.record({ value: fc.double(), ms: fc.integer({ min: -5_000, max: 20_000 }) })
    fc.assert(
      fc.property(ranks, fc.array(step, { maxLength: 60 }), (count, steps) => {
        let busy = 0
        const names = Array.from({ length: count }, (_, rank) => `class-${rank}`)
        const { passes } = shedder({ signal: () => busy, classes: names })
        for (const { value, ms } of steps) {
          busy = value
          vi.setSystemTime(Date.now() + ms)
          const passing = names.map(passes)
          expect(passing.at(-1)).toBe(true)
          expect(passing).toEqual([...passing].sort((a, b) => Number(a) - Number(b)))
        }
      }),
      { numRuns: 50 },
    )
  })
})

it('in a closed loop, classes rarely switch', () => {
  let busy = 0
  const { seconds } = shedder({ signal: () => busy })
  const lengths: number[] = []
  for (let second = 0; second < 600; second += 1) {
    const [passing = []] = seconds(1)
    lengths.push(passing.length)
    // Each class that passes adds 8 to what is busy, with a lag of two seconds.
    busy += (passing.length * 8 - busy) * 0.4
  }
  expect(Math.min(...lengths)).toBeGreaterThan(0)
  expect(turns(lengths)).toBeLessThanOrEqual(600 / 8)
})

describe('a client that is shed', () => {
  const critical = { class: 'critical' }
  const batch = { class: 'batch' }

  /** A guard under so much pressure that only 'critical' passes. */
  async function shedding(
    limits: Partial<GuardFields<Client>> = {},
    priority: ShedOptions<Client>['priority'] = ({ headers }) => headers.class,
  ) {
    const pressure = { signal: () => 100, low: 10, high: 20, smoothing: 1, priority }
    const shed = { ...pressure, classes: ['batch', 'critical'] }
    const guard = clientsOf({ limit: 100, window: '1m', ...limits, shed } as GuardFields<Client>)
    for (let second = 0; second < 2; second += 1) {
      await guard.ask(critical)
      vi.setSystemTime(Date.now() + 1_000)
    }
    return guard
  }

  it('gets 503, is not charged, and sees no policies', async () => {
    const onDecision = vi.fn()
    const { ask } = await shedding({ observers: { onDecision } })
    onDecision.mockClear()

    expect(await ask(batch)).toMatchObject({
      status: 503,
      body: '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503}',
    })
    expect(onDecision).toHaveBeenCalledOnce()
    expect(onDecision.mock.calls[0]?.[0]).toMatchObject({
      decision: { allowed: false, outcomes: [], retryAfterMs: 5_000, delayMs: 0, source: 'shed' },
      checks: [],
    })
    expect((await ask(batch)).fields).toEqual({ 'Retry-After': '5', 'Cache-Control': 'no-store' })
    expect((await ask(critical)).decision?.remaining).toBe(97)
  })

  it('gets a different wait with jitter, and the reason by a message function', async () => {
    const message: GuardFields<Client>['message'] = (_, { source }) => `because of ${source}`
    const { ask } = await shedding({ retryJitter: 1, message })
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.99)
    const { fields, body } = await ask(batch)
    random.mockRestore()

    expect([fields['Retry-After'], body]).toEqual(['10', 'because of shed'])
  })

  it('is never a passing preflight, a skipped request, or on a route without limits', async () => {
    const { ask } = await shedding({
      skip: ({ headers }) => headers.skip === 'yes',
      preflights: 'pass',
      routes: { '/login': { limit: 5, window: '1m' }, '/health': false },
    })
    const at = (path: string) => ({ path })
    expect((await ask(batch)).status).toBe(503)
    expect((await ask({ ...batch, skip: 'yes' })).status).toBe(200)
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
    expect((await ask({ ...batch, ...preflight }, { method: 'OPTIONS' })).status).toBe(200)
    expect((await ask(batch, at('/login'))).status).toBe(503)
    expect((await ask(critical, at('/login'))).status).toBe(200)
    expect((await ask(batch, at('/health'))).status).toBe(200)
  })

  it('is an application error if the priority function rejects', async () => {
    const rejecting = shedding({}, () => Promise.reject(new Error('no class')))
    await expect(rejecting).rejects.toThrow('no class')
  })
})

it.each<Wrong>([
  [{ classes: ['one'] }, /^shed.classes must be two or more different names/],
  [{ classes: ['a', 'a'] }, /^shed.classes/],
  [{ classes: ['a', ''] }, /^shed.classes/],
  [{ classes: 'batch' }, /^shed.classes .* but is 'batch'/],
  [{ priority: 'batch' }, /^shed.priority must be a function/],
  [{ retryAfter: 0 }, /^shed.retryAfter must be whole milliseconds/],
  [{ high: 5 }, /^shed.high must be more than shed.low \(10\)/],
  [{ signal: undefined }, /^shed.signal must be/],
  [{ clases: [] }, /shed: there is no option 'clases'/, 'SLUICE_OPTION_UNKNOWN'],
])('%o is rejected if wrong, with the fix', (wrong, message, code) => {
  expect(() => shedder(wrong)).toThrow(errorOf(message, code))
})
