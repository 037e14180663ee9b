import { describe, expect, it, vi } from 'vitest'
import { OutageWatch } from '../../../packages/core/src/resilience/outage-watch.ts'
import { StoreMonitor } from '../../../packages/core/src/resilience/store-monitor.ts'
import { fakeTime } from '../../support/fake-time.ts'

fakeTime(undefined, { random: 0 })

const caller = { limiter: {} } as never

const nothing = () => undefined
const parts = { monitor: new StoreMonitor(), fallback: caller, onAway: nothing, onBack: nothing }
const breakerOf = () => new OutageWatch(parts)

function open(breaker = breakerOf()) {
  for (let i = 0; i < 3; i += 1) breaker.fail(caller, {})
  return breaker
}

describe('a closed breaker', () => {
  const halfFailing = (checks: number) => {
    const breaker = breakerOf()
    for (let i = 0; i < checks; i += 1) {
      breaker.succeed(caller)
      breaker.fail(caller, {})
    }
    return breaker
  }

  it('counts the failures of one batch as one incident', () => {
    const breaker = breakerOf()
    const error = new Error('one batch')
    for (let i = 0; i < 128; i += 1) breaker.fail(caller, error)
    expect(breaker.state).toBe('closed')
  })

  it('restarts counting with every answer', () => {
    const breaker = breakerOf()
    for (let i = 0; i < 19; i += 1) {
      breaker.fail(caller, {})
      for (let answer = 0; answer < 2; answer += 1) breaker.succeed(caller)
    }
    expect(breaker.state).toBe('closed')
  })

  it('opens when half of the recent checks fail, and ignores older ones', () => {
    expect(halfFailing(9).state).toBe('closed')
    expect(halfFailing(10).state).toBe('open')
    const old = halfFailing(9)
    vi.advanceTimersByTime(20_000)
    old.succeed(caller)
    old.fail(caller, {})
    expect(old.state).toBe('closed')
  })
})

describe('an open breaker', () => {
  it('doubles the wait with each probe that fails, up to two seconds, until a probe is answered', () => {
    const breaker = open()
    breaker.succeed(caller) // A late answer is ignored.
    const waits: number[] = []
    for (let i = 0; i < 4; i += 1) {
      waits.push(breaker.retryAt - performance.now())
      vi.advanceTimersByTime(waits[i] ?? 0)
      expect(breaker.mayAsk({ checks: [], caller })).toBe(true)
      breaker.fail(caller, {})
    }
    expect(waits).toEqual([500, 1_000, 2_000, 2_000])
    vi.advanceTimersByTime(2_000)
    breaker.mayAsk({ checks: [], caller })
    breaker.succeed(caller)
    vi.advanceTimersByTime(3_000)
    breaker.mayAsk({ checks: [], caller })
    expect(open(breaker).retryAt - performance.now()).toBe(500)
  })

  it.each([0, 0.5, 0.999])('shortens waits by up to a half: by half of %s', (random) => {
    vi.mocked(Math.random).mockReturnValue(random)
    expect(open().retryAt - performance.now()).toBe(500 * (1 - random / 2))
  })
})
