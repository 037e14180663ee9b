import { like, same } from '../assertions.ts'
import type { StoreCases } from './store-bench.ts'

/** Tests for changes to taken units: refunds, charges, resets. */
export const followUps: StoreCases = {
  async 'refunds a decision only once'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 3 })
    const decision = await limiter.consume('k', { cost: 2 })
    await limiter.consume('k')
    same(await limiter.refund(decision), true, 'refund returns true if it gave units back')
    same(await limiter.refund(decision), false, 'a second refund gives nothing back')
    same(await bench.left(limiter, 'k'), [2], 'two units came back')
  },

  async 'refunds nothing after a reset in the same millisecond'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 3 })
    const decision = await limiter.consume('k')
    await limiter.reset('k')
    await limiter.consume('k', { cost: 2 })
    await limiter.refund(decision)
    same(await bench.left(limiter, 'k'), [1], 'a reset key begins anew: earlier units are gone')
  },

  async 'refunds nothing in a later window, nor for a denial'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 2 })
    const decision = await limiter.consume('k', { cost: 2 })
    const denied = await limiter.consume('k')
    same(await limiter.refund(denied), false, 'a denial took nothing')
    bench.clock.advance('3m')
    await limiter.consume('k', { cost: 2 })
    await limiter.refund(decision)
    same(await bench.left(limiter, 'k'), [0], 'units of an earlier window do not come back')
  },

  async 'resets one key and no other'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 2 })
    await limiter.consume('a')
    await limiter.consume('b')
    same(await limiter.reset('a'), true, 'reset returns true for a used key')
    same(await bench.left(limiter, 'a'), [2], 'a reset key has its whole limit')
    same(await bench.left(limiter, 'b'), [1], 'another key keeps its count')
    same(await limiter.reset('c'), false, 'reset returns false for an unknown key')
  },

  async 'charges unconditionally, then denies'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 5 })
    const { allowed, retryAfterMs, outcomes } = await limiter.charge('k', { cost: 9 })
    same([allowed, retryAfterMs], [true, 0], 'a charge is always allowed')
    same(outcomes[0]?.remaining, 0, 'a charge above the limit leaves 0')
    await bench.isAdmitted(limiter, 'what was charged counts', false)
  },
}

/** Tests for algorithms whose units return over time. */
export const forUnits: StoreCases = {
  async 'refunds part of a decision'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 5 })
    const decision = await limiter.consume('k', { cost: 4 })
    same(await limiter.refund(decision, { units: 1 }), true, 'a refund of one unit of four')
    same(await bench.left(limiter, 'k'), [2], 'one unit came back')
    same(await limiter.refund(decision), true, 'a refund of the rest')
    same(await bench.left(limiter, 'k'), [5], 'all units came back')
  },

  async 'charges a policy with countDenied, whichever policy denies'(bench) {
    const limiter = bench.limiter(
      { name: 'tight', limit: 1 },
      { name: 'penalty', limit: 3, window: '1h', countDenied: true },
    )
    let waitMs = 0
    for (const [remaining, allowed] of [
      [2, true],
      [1, false],
      [0, false],
    ] as const) {
      const decision = await limiter.consume('k')
      const expected = { allowed, outcomes: [{ allowed }, { allowed: true, remaining }] }
      like(decision, expected, 'countDenied takes a unit for each denial, and room does not deny')
      waitMs = decision.retryAfterMs
    }
    bench.clock.advance(waitMs - 1)
    like(await limiter.peek('k'), { outcomes: [{}, { allowed: false }] }, 'it is full until then')
    bench.clock.advance(1)
    same((await limiter.peek('k')).allowed, true, 'the wait includes the denied request')
  },
}

/** Tests for algorithms that count leases. */
export const forLeases: StoreCases = {
  async 'releases a lease, and renews one'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 1 })
    const first = await limiter.consume('k')
    same(await limiter.release(first), true, 'release returns true for a running lease')
    const second = await limiter.consume('k')
    same(second.allowed, true, 'a released lease makes room')
    bench.clock.advance('40s')
    same(await limiter.renew(second), true, 'renew returns true for a running lease')
    bench.clock.advance('40s')
    await bench.isAdmitted(limiter, 'a renewed lease still counts', false)
    bench.clock.advance('30s')
    await bench.isAdmitted(limiter, 'a lease that nobody renews ends by itself')
  },
}
