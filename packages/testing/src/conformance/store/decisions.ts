import { like, same } from '../assertions.ts'
import type { StoreCases } from './store-bench.ts'

const never = Number.POSITIVE_INFINITY

/** Tests for the decision on one request. */
export const decisions: StoreCases = {
  async 'admits the limit, then refuses until the wait is over'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 3 })
    for (const remaining of [2, 1, 0]) {
      const outcomes = [{ allowed: true, limit: 3, remaining }]
      const expected = { allowed: true, retryAfterMs: 0, source: 'store', outcomes }
      like(await limiter.consume('k'), expected, 'a request within the limit is admitted')
    }
    const denied = await limiter.consume('k')
    const expected = { allowed: false, outcomes: [{ allowed: false, remaining: 0 }] }
    like(denied, expected, 'the fourth request of a limit of 3 is denied')
    if (!bench.isExact) return
    bench.clock.set(bench.clock() + denied.retryAfterMs - 1)
    await bench.isAdmitted(limiter, 'a millisecond before retryAfterMs it is denied', false)
    bench.clock.advance(1)
    await bench.isAdmitted(limiter, 'after retryAfterMs it is admitted')
  },

  async 'charges nothing when one of several policies denies'(bench) {
    const limiter = bench.limiter({ name: 'tight', limit: 2 }, { name: 'loose', limit: 10 })
    for (let i = 0; i < 2; i += 1) await limiter.consume('k')
    const expected = { allowed: false, outcomes: [{ allowed: false }, { allowed: true }] }
    for (let i = 0; i < 5; i += 1) {
      like(await limiter.consume('k'), expected, 'each policy says whether the request may pass')
    }
    same(await bench.left(limiter, 'k'), [0, 8], 'a denied request takes nothing of any policy')
  },

  async 'takes the given cost, and reports a cost that can never fit'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 10 })
    for (const [cost, expected, promise] of [
      [7, { allowed: true, outcomes: [{ remaining: 3 }] }, 'a cost of 7 fits into 10'],
      [4, { allowed: false, outcomes: [{ remaining: 3 }] }, 'a cost of 4 does not fit into 3'],
      [11, { allowed: false, retryAfterMs: never }, 'a cost above the limit never passes'],
      [3, { allowed: true, outcomes: [{ remaining: 0 }] }, 'a cost of 3 fits into 3'],
    ] as const) {
      like(await limiter.consume('k', { cost }), expected, promise)
    }
  },

  async 'admits cost 0 without writing, and nothing with limit 0'(bench) {
    const open = bench.limiter({ name: 'open', limit: 1 })
    await bench.isAdmitted(open, 'cost 0 passes', true, 0)
    same(await bench.left(open, 'k'), [1], 'cost 0 takes nothing')
    const blocked = bench.limiter({ name: 'blocked', limit: 0 })
    const outcomes = [{ remaining: 0, resetMs: bench.isExact ? 60_000 : undefined }]
    const expected = { allowed: false, retryAfterMs: never, outcomes }
    for (const cost of [0, 1]) {
      like(await blocked.consume('k', { cost }), expected, 'limit 0 blocks everything')
    }
  },

  async 'changes nothing on peek'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 2 })
    await limiter.consume('k')
    const expected = { outcomes: [{ allowed: true, remaining: 1 }] }
    for (let i = 0; i < 5; i += 1) {
      like(await limiter.peek('k'), expected, 'a peek changes nothing')
    }
    same((await limiter.peek('k', { cost: 2 })).allowed, false, 'a peek answers for its cost')
  },

  async 'applies a changed limit, and keeps the count'(bench) {
    const small = bench.limiter({ name: 'p', limit: 2 })
    const large = bench.limiter({ name: 'p', limit: 5 })
    await small.consume('k', { cost: 2 })
    same(await bench.left(large, 'k'), [3], 'a larger limit knows what was taken before')
    await large.consume('k', { cost: 3 })
    const expected = { outcomes: [{ allowed: false, limit: 2, remaining: 0 }] }
    like(await small.consume('k'), expected, 'a smaller limit denies, and remaining stays at 0')
  },

  async 'admits exactly the limit of a parallel burst'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 37 })
    const decisions = await Promise.all(Array.from({ length: 200 }, () => limiter.consume('k')))
    const admitted = decisions.filter(({ allowed }) => allowed)
    same(admitted.length, 37, 'of 200 requests at once, as many as the limit are admitted')
  },

  async 'decides concurrent requests atomically, each for its own keys and policies'(bench) {
    const both = bench.limiter({ name: 'user', limit: 5 }, { name: 'all', limit: 8 })
    const one = bench.limiter({ name: 'user', limit: 5 })
    const work = Array.from({ length: 40 }, (_, i) => {
      return (i % 2 === 0 ? both : one).consume(i % 4 < 2 ? 'a' : 'b')
    })
    const decisions = await Promise.all(work)
    const [admitted, denied] = [true, false].map((allowed) =>
      decisions.filter((decision) => decision.allowed === allowed),
    )
    same(admitted?.length, 10, 'two keys with a limit of 5 each admit 10 of 40 requests at once')
    same(denied?.length, 30, 'all other requests are denied')
    for (const key of ['a', 'b']) {
      const taken = decisions.filter(
        ({ allowed }, i) => allowed && i % 2 === 0 && (i % 4 < 2 ? 'a' : 'b') === key,
      )
      const left = [0, 8 - taken.length]
      same(await bench.left(both, key), left, `only admitted requests of ${key} count`)
    }
  },

  async 'separates similar keys'(bench) {
    const limiter = bench.limiter({ name: 'p', limit: 1 })
    for (const key of lookalikes) {
      const { allowed } = await limiter.consume(key)
      same(allowed, true, `the key ${JSON.stringify(key)} has its own count`)
    }
  },

  async 'separates policies with similar names'(bench) {
    const long = 'p'.repeat(255)
    const joined = [':', '|', '/', '~', '.', '-', '_', ' '].flatMap((delimiter) => [
      ['a', `b${delimiter}c`],
      [`a${delimiter}b`, 'c'],
    ])
    const names = ['Login', 'login', `${long}a`, `${long}b`, 'p', 'p ', 'p%20']
    for (const [name = '', key = ''] of [...joined, ...names.map((name) => [name, 'k'])]) {
      const { allowed } = await bench.limiter({ name, limit: 1 }).consume(key)
      same(allowed, true, `the key '${key}' of the policy '${name}' has its own count`)
    }
  },
}

/** Keys that a delimiter, escaping, collation or Unicode normalisation may confuse. */
const lookalikes = [
  ...['a:b', 'a', 'b', 'a:', ':a', '{a}', 'a\0', 'a|b', 'a*', '\ud800', '\udfff', '%3a'],
  ...['A', 'a ', ' a', '\u00e9', 'e\u0301', 'e', '\ufb01', 'fi', '\u00df', 'ss', '1', '01'],
  ...['__proto__', 'x'.repeat(300), 'x'.repeat(301)],
]
