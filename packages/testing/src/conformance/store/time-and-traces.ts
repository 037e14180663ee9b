import { type Decision, type Limiter, memoryStore } from '@sluice/core'
import { same } from '../assertions.ts'
import { comparable, type StoreCase, type StoreCases } from './store-bench.ts'

/** Tests for clock steps, and the comparison with `memoryStore` over a long random trace. */
export const timeAndTraces: StoreCases = {
  ...Object.fromEntries(
    [-3_600_000, -5, 5, 3_600_000].map((stepMs) => [
      `keeps the count of a longer window when the clock steps by ${stepMs} ms`,
      keepsItsCount(stepMs),
    ]),
  ),
  ...Object.fromEntries(
    [5, 3_600_000].map((stepMs) => [
      `returns units at most a window later when the clock is set back by ${stepMs} ms`,
      comesToItself(stepMs),
    ]),
  ),
  async 'grants no extra units when the clock jumps within a window'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 3 })
    bench.clock.advance('30s')
    await limiter.consume('k', { cost: 3 })
    for (const stepMs of [-31_000, 31_000, -31_000, 31_000]) {
      bench.clock.set(bench.clock() + stepMs)
      await bench.isAdmitted(limiter, 'the same time counts only once', false)
    }
  },
  async 'gives the same answers as memoryStore for a random trace'(bench) {
    const policies = [
      { name: 'tight', limit: 3, window: '10s' },
      { name: 'loose', limit: 10, window: '1m' },
    ] as const
    const subject = bench.limiter(...policies)
    const model = bench.limiterOver(memoryStore(), policies)
    const random = numbersFrom(20_261_122)
    let last: readonly [Decision, Decision] | undefined
    for (let step = 0; step < 120; step += 1) {
      if (random() < 0.5) bench.clock.advance(1 + Math.floor(random() * 6_000))
      const key = random() < 0.5 ? 'a' : 'b'
      const cost = Math.floor(random() * 4)
      const chosen = random()
      const at = `step ${step} of the trace`
      if (chosen < 0.1 && last) {
        const refunds = [await subject.refund(last[0]), await model.refund(last[1])]
        same(refunds[0], refunds[1], `${at}: whether a refund gave anything back`)
        last = undefined
        continue
      }
      if (chosen < 0.15) {
        same(await subject.reset(key), await model.reset(key), `${at}: whether a reset forgot`)
        continue
      }
      if (chosen < 0.3) {
        const peek = async (limiter: Limiter) => (await limiter.peek(key, { cost })).outcomes
        const [found, expected] = [await peek(subject), await peek(model)]
        same(found.map(comparable), expected.map(comparable), `${at}, a peek of cost ${cost}`)
        continue
      }
      const answers = [
        await subject.consume(key, { cost }),
        await model.consume(key, { cost }),
      ] as const
      const [found, expected] = answers.map(({ outcomes }) => outcomes.map(comparable))
      same(found, expected, `${at}, a request of cost ${cost}`)
      if (answers[0].allowed) last = answers
    }
  },
}

function keepsItsCount(stepMs: number): StoreCase {
  return async (bench) => {
    const limiter = bench.limiter({ name: 'p', limit: 3, window: '1d' })
    bench.clock.advance('2h')
    await limiter.consume('k', { cost: 3 })
    bench.clock.set(bench.clock() + stepMs)
    await bench.isAdmitted(limiter, 'three units still count', false, 3)
    const [left = 0] = await bench.left(limiter, 'k')
    same(left <= 1, true, `at most one unit is left, and there are ${left}`)
  }
}

function comesToItself(stepMs: number): StoreCase {
  return async (bench) => {
    const limiter = bench.limiter({ name: 'p', limit: 3 })
    bench.clock.advance('30s')
    await limiter.consume('k', { cost: 3 })
    bench.clock.set(bench.clock() - stepMs)
    await bench.isAdmitted(limiter, 'setting the clock back grants nothing', false)
    bench.clock.advance(bench.lifeMs + Math.min(stepMs, 60_000))
    await bench.isAdmitted(limiter, 'no stored time is more than a window in the future', true, 3)
  }
}

/** The generator mulberry32: the same numbers in every run. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
