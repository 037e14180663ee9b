import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { CircuitBreaker } from '../../../packages/core/src/resilience/outage-watch.ts'

function opened(random = 0) {
  const jitter = vi.spyOn(Math, 'random').mockReturnValue(random)
  onTestFinished(() => jitter.mockRestore())
  const breaker = new CircuitBreaker()
  for (let i = 0; i < 3; i += 1) breaker.fail(0, {})
  return breaker
}

describe('a closed breaker', () => {
  const halfFailing = (checks: number) => {
    const breaker = new CircuitBreaker()
    for (let i = 0; i < checks; i += 1) {
      breaker.succeed(i)
      breaker.fail(i, {})
    }
    return breaker
  }

  it('counts the failures of one batch as one incident', () => {
    const breaker = new CircuitBreaker()
    const error = new Error('one batch')
    for (let i = 0; i < 128; i += 1) breaker.fail(0, error)
    expect(breaker.state).toBe('closed')
  })

  it('restarts counting with every answer', () => {
    const breaker = new CircuitBreaker()
    for (let i = 0; i < 19; i += 1) {
      breaker.fail(i, {})
      for (let answer = 0; answer < 2; answer += 1) breaker.succeed(i)
    }
    expect(breaker.state).toBe('closed')
  })

  it('opens when half of the recent checks fail, and ignores older ones', () => {
    expect(halfFailing(9).state).toBe('closed')
    expect(halfFailing(10).state).toBe('open')
    const old = halfFailing(9)
    old.succeed(20_000)
    expect(old.fail(20_000, {})).toBe(false)
  })
})

describe('an open breaker', () => {
  it('doubles the wait with each probe that fails, up to two seconds, until it has recovered', () => {
    const breaker = opened()
    const waits: number[] = []
    let now = 0
    for (let i = 0; i < 4; i += 1) {
      waits.push(breaker.retryAt - now)
      now = breaker.retryAt
      breaker.probe(now)
      breaker.fail(now, {})
    }
    expect(waits).toEqual([500, 1_000, 2_000, 2_000])
    breaker.probe(breaker.retryAt)
    breaker.succeed(breaker.retryAt)
    breaker.recover()
    now = breaker.retryAt
    for (let i = 0; i < 3; i += 1) breaker.fail(now, {})
    expect(breaker.retryAt - now).toBe(500)
  })

  it('shortens waits by up to a half, at random', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 0.999, noNaN: true }), (share) => {
        const { retryAt } = opened(share)
        expect(retryAt).toBeGreaterThan(249)
        expect(retryAt).toBeLessThanOrEqual(500)
      }),
    )
  })

  it('ignores late answers: only a probe counts', () => {
    const breaker = opened()
    expect(breaker.succeed(10)).toBe(false)
    expect(breaker.state).toBe('open')
  })
})
