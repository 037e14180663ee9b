import type { InvalidEvent } from '@sluice/core'
import { type AdaptiveLimit, adaptive } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { raise } from '../../support/raise.ts'
import { scaled } from '../../support/scale.ts'
import { exchange, guardOf, now } from '../exchange.ts'
import { errorOf, type Wrong } from '../wrong-options.ts'
import { Plant, turns } from './plant.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 1_795_195_800_250 }))
afterEach(() => void vi.useRealTimers())

const hour = 3_600_000
const range = { low: 10, high: 20, min: 100, max: 1_000 }

function asker(limit: AdaptiveLimit) {
  const onInvalid = vi.fn<(event: InvalidEvent) => void>()
  const guard = guardOf({ window: '1m', limit, observers: { onInvalid } })
  /** The limit of a request that comes so much later. */
  function after(ms: number): number | undefined {
    vi.setSystemTime(Date.now() + ms)
    return now(guard.check(exchange()) as never).decision?.outcomes[0]?.limit
  }
  return { after, onInvalid }
}

/** The limits of so many seconds with a request in each. */
function seconds(count: number, after: (ms: number) => number | undefined): number[] {
  return Array.from({ length: count }, () => after(1_000) ?? Number.NaN)
}

describe('an adaptive limit', () => {
  it('starts at its maximum, shrinks to its minimum under load, and comes back', () => {
    let busy = 5
    const limit = adaptive({ ...range, signal: () => busy })
    const { after } = asker(limit)
    expect(seconds(10, after)).toEqual(Array(10).fill(1_000))
    busy = 100
    const shrinking = seconds(30, after)
    expect(shrinking.at(-1)).toBe(100)
    expect(shrinking).toEqual([...shrinking].sort((a, b) => b - a))
    busy = 5
    const growing = seconds(90, after)
    expect(growing.at(-1)).toBe(1_000)
    const steps = growing.map((value, index) => value - (growing[index - 1] ?? value))
    expect([Math.min(...steps), Math.max(...steps)]).toEqual([0, 45])
    expect(limit.current).toBe(1_000)
  })

  /** Sets the signal of a limit, and tells the limit of the last of so many requests. */
  function driven() {
    let busy = 0
    const { after } = asker(adaptive({ ...range, signal: () => busy }))
    return (value: number, count = 1, everyMs = 1_000) => {
      busy = value
      return Array.from({ length: count }, () => after(everyMs)).at(-1)
    }
  }

  it('ignores a single peak, such as a garbage collection', () => {
    const last = driven()
    expect([last(5, 10), last(40), last(5, 30)]).toEqual([1_000, 1_000, 1_000])
  })

  it('recovers after a long enough pause, and continues when the clock is set back', () => {
    const last = driven()
    expect([last(100, 30), last(1, 1, hour), last(1, 1, -hour)]).toEqual([100, 1_000, 1_000])
    expect([last(100, 30), last(100, 1, -hour), last(1, 100)]).toEqual([100, 100, 1_000])
  })

  it('reads the signal at most once per interval, and only with requests', () => {
    const signal = vi.fn(() => 5)
    const { after } = asker(adaptive({ ...range, signal, interval: '2s' }))
    for (let i = 0; i < 100; i += 1) after(100)
    expect(signal).toHaveBeenCalledTimes(5)
    after(3_600_000)
    expect(signal).toHaveBeenCalledTimes(6)
  })

  it('reads one value of an async signal at a time', async () => {
    let answer: (value: number) => void = () => undefined
    const signal = vi.fn(() => new Promise<number>((resolve) => (answer = resolve)))
    const limit = adaptive({ ...range, signal, smoothing: 1 })
    const { after } = asker(limit)
    for (let i = 0; i < 5; i += 1) after(1_000)
    expect(signal).toHaveBeenCalledTimes(1)
    for (let i = 0; i < 3; i += 1) {
      answer(1_000)
      await Promise.resolve()
      after(1_000)
    }
    expect(signal).toHaveBeenCalledTimes(4)
    expect(limit.current).toBe(250)
  })

  const code = 'SLUICE_SIGNAL_INVALID'
  it.each<[string, () => unknown, RegExp]>([
    ['rejects', async () => raise('no answer'), /^signal .* threw: 'no answer'/],
    ['throws', () => raise('no number'), /^signal .* threw: 'no number'; limits stay as they are/],
    ['yields NaN', () => Number.NaN, /must return a number ≥ 0, but returned NaN/],
    ['yields Infinity', () => Number.POSITIVE_INFINITY, /but returned Infinity/],
    ['is negative', () => -1, /but returned -1/],
    ['yields a text', () => '100', /but returned '100'/],
    ['yields nothing', () => undefined, /but returned undefined/],
  ])('does not change while its signal %s, and reports it', async (_, broken, message) => {
    let busy: () => unknown = () => 100
    const limit = adaptive({ ...range, signal: (() => busy()) as () => number })
    const { after, onInvalid } = asker(limit)
    seconds(5, after)
    const stays = limit.current
    expect(stays).toBeLessThan(1_000)
    busy = broken
    for (let second = 0; second < 10; second += 1) {
      expect(after(1_000)).toBe(stays)
      await Promise.resolve().then()
    }
    expect(onInvalid).toHaveBeenCalledTimes(10)
    const event = onInvalid.mock.calls[0]?.[0]
    expect([event?.code, event?.message]).toEqual([code, expect.stringMatching(message)])
    expect(event?.message).toContain('adaptive({ min: 100, max: 1000 })')
    busy = () => 100
    expect(seconds(30, after).at(-1)).toBe(100)
  })

  it('does not change while its signal does not answer, and reports it once', () => {
    const signal = vi.fn(() => new Promise<number>(() => undefined))
    const { after, onInvalid } = asker(adaptive({ ...range, signal }))
    expect(seconds(9, after)).toEqual(Array(9).fill(1_000))
    expect(onInvalid).not.toHaveBeenCalled()
    seconds(30, after)
    expect(signal).toHaveBeenCalledTimes(1)
    const message = expect.stringContaining('has not returned for 10000 ms')
    expect(onInvalid).toHaveBeenCalledExactlyOnceWith({ code, message })
  })

  it('is always an integer within its range, whatever its signal does', () => {
    const value = fc.oneof(fc.double(), fc.integer({ min: 0, max: 200 }))
    const step = fc.record({ value, ms: fc.integer({ min: -5_000, max: 20_000 }) })
    const bounds = fc.tuple(fc.nat(2_000), fc.integer({ min: 1, max: 2_000 }))
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 60 }), ([min, more], steps) => {
        let busy = 0
        const max = min + more
        const { after } = asker(adaptive({ low: 10, high: 20, min, max, signal: () => busy }))
        for (const { value: next, ms } of steps) {
          busy = next
          const limit = after(ms) ?? Number.NaN
          expect(Number.isInteger(limit) && limit >= min && limit <= max).toBe(true)
        }
      }),
      { numRuns: 50 },
    )
  })

  it.each<Wrong>([
    [{ min: -1 }, /^adaptive.min must be a whole number/, 'SLUICE_LIMIT_INVALID'],
    [{ min: 0.5 }, /^adaptive.min/, 'SLUICE_LIMIT_INVALID'],
    [{ max: Number.NaN }, /^adaptive.max must be .* but is NaN/, 'SLUICE_LIMIT_INVALID'],
    [{ min: 1_000 }, /^adaptive.min must be less than .* \(1000\)/, 'SLUICE_LIMIT_INVALID'],
    [{ low: -1 }, /^adaptive.low must be a number ≥ 0/],
    [{ low: undefined }, /^adaptive.low must be .* \(only eventLoopDelay\(\)/],
    [{ high: undefined }, /^adaptive.high must be .* but is undefined/],
    [{ high: 10 }, /^adaptive.high must be more than adaptive.low \(10\), but is 10/],
    [{ high: Number.POSITIVE_INFINITY }, /^adaptive.high/],
    [{ signal: 'cpu' }, /^adaptive.signal must be eventLoopDelay\(\), .*, cpu\(\) or/],
    [{ interval: '0s' }, /^adaptive.interval must be whole milliseconds/],
    [{ smoothing: 0.5 }, /^adaptive.smoothing must be whole milliseconds/],
    [{ maximum: 5 }, /adaptive: there is no option 'maximum'/, 'SLUICE_OPTION_UNKNOWN'],
  ])('is rejected if %o is wrong, with the fix', (wrong, message, code) => {
    const options = { ...range, signal: () => 1, ...wrong }
    expect(() => adaptive(options)).toThrow(errorOf(message, code))
  })

  it('is rejected beyond what its window can count', () => {
    const limit = adaptive({ ...range, max: 2 ** 47, signal: () => 1 })
    expect(() => guardOf({ window: '1m', limit })).toThrow(
      /^limit \(140737488355328\) times the window/,
    )
  })
})

describe('a closed loop', () => {
  /** A server whose delay depends on what it lets through: the limits, and the delays, of every second. */
  function simulate(at: {
    capacity: number
    lagMs: number
    demand: (second: number) => number
    /** What the signal is multiplied with. */
    noise?: (second: number) => number
    min: number
  }) {
    const plant = new Plant(at)
    let second = 0
    const signal = (): number => plant.delayMs * (at.noise?.(second) ?? 1)
    const { after } = asker(adaptive({ low: 2, high: 10, min: at.min, max: 2_000, signal }))
    const limits: number[] = []
    const delays: number[] = []
    for (; second < 900; second += 1) {
      const allowed = after(1_000) ?? 0
      plant.run(Math.min(at.demand(second), allowed), 1_000)
      limits.push(allowed)
      delays.push(plant.delayMs)
    }
    return { limits, delays }
  }

  const server = {
    capacity: fc.integer({ min: 200, max: 2_000 }),
    lagMs: fc.integer({ min: 100, max: 3_000 }),
    // The load comes in a step, after a quiet minute.
    demand: fc
      .integer({ min: 10, max: 10_000 })
      .map((demand) => (second: number) => (second < 60 ? 10 : demand)),
  }

  it('settles within the band for any capacity, lag and demand, and does not swing', () => {
    const law = fc.property(fc.record({ ...server, min: fc.nat(100) }), (plant) => {
      const { limits, delays } = simulate(plant)
      expect(new Set(limits.slice(0, 60))).toEqual(new Set([2_000]))
      expect(turns(limits)).toBeLessThanOrEqual(2)
      expect(new Set(limits.slice(-300)).size).toBe(1)
      expect(Math.max(...delays.slice(-300))).toBeLessThanOrEqual(10)
    })
    fc.assert(law, { numRuns: scaled(30, 200) })
  })

  it('settles although the signal is noisy', () => {
    const factor = fc.double({ min: 0.7, max: 1.3, noNaN: true })
    const factors = fc.array(factor, { minLength: 7, maxLength: 97 })
    const law = fc.property(fc.record(server), factors, (plant, noises) => {
      const noise = (second: number) => noises[second % noises.length] ?? 1
      const { limits } = simulate({ ...plant, noise, min: 50 })
      expect(turns(limits)).toBeLessThanOrEqual(4)
      expect(new Set(limits.slice(-300)).size).toBe(1)
    })
    fc.assert(law, { numRuns: scaled(30, 200) })
  })
})
