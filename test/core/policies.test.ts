import {
  algorithmNames,
  createLimiter,
  durationMs,
  type LimiterOptions,
  memoryStore,
  unlimited,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { testedAlgorithms } from '../stores/algorithm-policy.ts'

const good = { limit: 5, window: '1m' } as const
const bucket = { ...good, algorithm: 'token-bucket' } as const
const queue = { ...good, algorithm: 'leaky-bucket' } as const
const leases = { limit: 5, algorithm: 'concurrency' } as const
const windows = { ...good, algorithm: 'fixed-window' } as const
const hot = { name: 'hot', limit: 1_000, window: '1m', prefetch: '1s' } as const
const async = { maxUncounted: 5 }
const plainStore = { apply: () => [], change: () => [] }
const by = (window: object) => ({ ...windows, window })

function make(options: unknown): unknown {
  return createLimiter(options as LimiterOptions)
}

describe('a window', () => {
  it('is a number of ms, or a whole number with its unit', () => {
    const windows = ['500ms', '10s', '15m', '1h', '1d', '2w', 1, 250]
    const times = [500, 10_000, 900_000, 3_600_000, 86_400_000, 1_209_600_000, 1, 250]
    expect(windows.map((window) => durationMs(window, 'window'))).toEqual(times)
  })

  it.each([
    ...['5', '-1s', '1.5h', ' 10s', '', '1e3s', '0s', '01s', '10S', '1y', 's', '10s\n', '1 day'],
    ...['9999999999999999d', 0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, []],
  ])('%j is refused with its name, its value and the legal form', (window) => {
    expect(() => make({ limit: 5, window })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_OPTION_INVALID',
        message: expect.stringMatching(/^window must be .*'10s'.*but is /),
      }),
    )
  })

  it('is of ten years at most', () => {
    expect(() => make({ limit: 1, window: '3650d' })).not.toThrow()
    expect(() => make({ limit: 1, window: '3651d' })).toThrow(/^window must be at most ten years/)
  })
})

describe('a limit', () => {
  it.each([-1, Number.NaN, 0.5, '5', 2 ** 53, Number.POSITIVE_INFINITY, null, undefined])(
    '%j is refused with the legal range',
    (limit) => {
      expect(() => make({ limit, window: '1m' })).toThrow(
        expect.objectContaining({
          code: 'SLUICE_LIMIT_INVALID',
          message: expect.stringMatching(/^limit must be a whole number from 0 to \d+, but is /),
        }),
      )
    },
  )

  it('can be 0, which blocks everything, and unlimited, which counts nothing', async () => {
    const never = Number.POSITIVE_INFINITY
    const blocked = await createLimiter({ limit: 0, window: '1m' }).consume('k')
    expect(blocked).toMatchObject({ allowed: false, retryAfterMs: never })
    const store = memoryStore()
    const open = createLimiter({ limit: unlimited, window: '1m', store })
    const decision = await open.consume('k', { cost: 1_000_000 })
    expect(decision).toMatchObject({ allowed: true, outcomes: [{ allowed: true, limit: never }] })
    expect(store.size).toBe(0)
  })

  it('must keep its product with the window exact, and the message has the maximum', () => {
    expect(() => make({ limit: 2 ** 50, window: 8 })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_POLICY_RANGE',
        message: expect.stringContaining('can be 140737488355327 at most'),
      }),
    )
    expect(() => make({ limit: 140_737_488_355_327, window: 8 })).not.toThrow()
  })
})

describe('a name', () => {
  it.each(['naïve', 'tab\there', 'x\r\ny', '', 'x'.repeat(257), 5, null])(
    '%j is refused, since no header can carry it',
    (name) => {
      expect(() => make({ ...good, name })).toThrow(
        expect.objectContaining({ code: 'SLUICE_POLICY_NAME' }),
      )
    },
  )

  it('is unique in a limiter', () => {
    const policies = [
      { name: 'a', ...good },
      { name: 'a', limit: 9, window: '1h' },
    ]
    expect(() => make({ policies })).toThrow(
      expect.objectContaining({
        code: 'SLUICE_POLICY_DUPLICATE',
        message: expect.stringContaining("'a'"),
      }),
    )
  })

  it('has one algorithm and one window on a store, but any limit', () => {
    const store = memoryStore()
    createLimiter({ store, name: 'a', ...good })
    expect(() => make({ store, name: 'a', limit: 99, window: 60_000 })).not.toThrow()
    for (const [other, text] of [
      [{ window: '2m' }, 'sliding-log over 120000 ms;'],
      [{ resolution: '1s' }, 'sliding-log over 60000 ms at 1000 ms;'],
      [{ algorithm: 'fixed-window' }, 'fixed-window over 60000 ms;'],
      [
        { algorithm: 'fixed-window', align: 'clock' },
        'fixed-window over 60000 ms aligned to the clock;',
      ],
      [{ algorithm: 'concurrency', window: undefined, lease: '9s' }, 'concurrency'],
    ] as const) {
      const message = expect.stringContaining(`sliding-log over 60000 ms and as ${text}`)
      expect(() => make({ store, name: 'a', ...good, ...other })).toThrow(
        expect.objectContaining({ code: 'SLUICE_POLICY_CONFLICT', message }),
      )
    }
    expect(() => make({ name: 'a', limit: 5, window: '2m' })).not.toThrow()
  })

  it('is one quota for all limiters of a store; policies without one share nothing', async () => {
    const store = memoryStore()
    const named = [1, 2].map(() => createLimiter({ store, name: 'shared', limit: 2, window: '1m' }))
    const unnamed = [1, 2].map(() => createLimiter({ store, limit: 2, window: '1m' }))
    for (const limiter of [...named, ...unnamed]) await limiter.consume('k')
    const peeks = await Promise.all([...named, ...unnamed].map((limiter) => limiter.peek('k')))
    expect(peeks.map(({ remaining }) => remaining)).toEqual([0, 0, 1, 1])
  })

  it('is derived, and distinct in one limiter, for policies without one', () => {
    const { policies } = createLimiter({
      policies: [good, { name: 'default-2', ...good }, { limit: 9, window: '1h' }, good],
    })
    const names = ['default', 'default-2', 'default-3', 'default-4']
    expect(policies.map(({ name }) => name)).toEqual(names)
    expect(new Set(policies.map(({ id }) => id)).size).toBe(4)
  })

  it('gives the same identity in every process that runs the same code', () => {
    const ids = (): string[] => {
      const store = memoryStore()
      return [good, { limit: 9, window: '1h' } as const, good].flatMap((options) =>
        createLimiter({ store, ...options }).policies.map(({ id }) => id),
      )
    }
    expect(ids()).toEqual(ids())
  })
})

describe('options', () => {
  it.each<[options: unknown, message: string | RegExp]>([
    [{ ...good, windows: 1 }, "there is no option 'windows' (did you mean 'window'?)"],
    [{ ...good, max: 5 }, "there is no option 'max' (did you mean 'limit'?)"],
    [{ ...good, zzz: 5 }, /^createLimiter: there is no option 'zzz'; .*\/sluice\/options\.html$/],
    [{ policies: [{ ...good, nmae: 'a' }] }, "policies[0]: there is no option 'nmae'"],
    [{ policies: [good, { limit: 5, window: '5' }] }, 'policies[1].window must be'],
    [{ policies: [] }, 'policies must be an array of 1 to 64 policies, but is an array of 0'],
    [{ policies: good }, 'policies must be an array'],
    [{ policies: Array.from({ length: 65 }, () => good) }, 'policies must be an array of 1 to 64'],
    [{ policies: [good], limit: 5 }, 'limit is shorthand for a single policy'],
    [{}, 'no policy: give limit and window'],
    [undefined, 'createLimiter must be a plain object'],
    [
      { ...good, algorithm: 'penalty' },
      "algorithm must be one of 'sliding-log', 'sliding-counter'",
    ],
    [{ ...good, align: 'clock' }, "only 'fixed-window' has it"],
    [{ ...good, burst: 5 }, "only 'token-bucket' has it"],
    [{ ...good, queue: 5 }, "only 'leaky-bucket' has it"],
    [{ ...good, maxDelay: '1s' }, "only 'leaky-bucket' has it"],
    [{ ...good, lease: '1s' }, "only 'concurrency' has it"],
    [{ ...good, retryAfter: '1s' }, "only 'concurrency' has it"],
    ...[0, 0.5, '5', null].map((burst): [unknown, RegExp] => [
      { ...bucket, burst },
      /^burst must be a whole number from 1 to 140737488355327,/,
    ]),
    ...[-0.1, 0.51, Number.NaN, '0.1', null].map((headroom): [unknown, RegExp] => [
      { ...good, headroom },
      /^headroom must be a number from 0 to 0.5, .* but is /,
    ]),
    [{ ...bucket, burst: 2 ** 40 }, 'burst (1099511627776) times the window'],
    ...[-1, 0.5, '5', null].map((units): [unknown, RegExp] => [
      { ...queue, queue: units },
      /^queue must be a whole number from 0 to 140737488355327,/,
    ]),
    [{ ...queue, queue: 2 ** 40 }, 'queue (1099511627777) times the window'],
    [{ ...queue, maxDelay: 0 }, 'maxDelay must be whole milliseconds ≥ 1'],
    [{ ...queue, maxDelay: '25d' }, 'maxDelay must be at most 2147483647 ms'],
    [{ ...leases, lease: 0 }, 'lease must be whole milliseconds ≥ 1'],
    [{ ...leases, lease: '4000d' }, 'lease must be at most ten years'],
    [{ ...leases, retryAfter: '0s' }, 'retryAfter must be whole milliseconds'],
    [{ ...good, algorithm: 'concurrency' }, "window must be left out with algorithm 'concurrency'"],
    [{ ...leases, countDenied: true }, 'countDenied must be left out'],
    [{ limit: 5 }, 'window must be whole milliseconds'],
    [
      { policies: [queue, leases] },
      /\(leaky-bucket\) holds requests, which would .*\(concurrency\)/,
    ],
    [{ ...windows, align: 'utc' }, "align must be one of 'clock'"],
    [{ ...windows, resolution: '1s' }, "only 'sliding-log' has it"],
    [
      { ...good, window: { every: 'day', zone: 'UTC' } },
      /^window must be a duration .*'fixed-window'/,
    ],
    [by({ every: 'year', zone: 'UTC' }), "window.every must be one of 'day', 'week', 'month', but"],
    [by({ every: 'day' }), "window.zone must be an IANA time zone, such as 'Europe/Rome' or 'UTC'"],
    [by({ every: 'day', zone: 'Europe/Roma' }), "UTC', but is 'Europe/Roma'"],
    [by({ every: 'day', zone: '+01:00' }), "UTC', but is '+01:00'"],
    [by({ every: 'day', timeZone: 'UTC' }), "window: there is no option 'timeZone'"],
    [by(new Map()), 'window must be a plain object, but is a Map'],
    [{ ...by({ every: 'day', zone: 'UTC' }), align: 'clock' }, 'align must be left out'],
    [{ ...good, resolution: '2m' }, 'resolution must be at most the window (60000 ms)'],
    [{ ...good, countDenied: 'yes' }, 'countDenied must be true or false'],
    [{ ...good, hidden: 1 }, 'hidden must be true or false'],
    [{ ...good, unit: 'tokens' }, "unit must be one of 'requests'"],
    [{ ...good, store: {} }, 'store must be a store, such as memoryStore()'],
    [{ ...good, store: Map }, 'store must be a store'],
    [{ ...good, failureMode: 'ignore' }, "failureMode must be one of 'fallback', 'open', 'closed'"],
    [{ ...good, observers: { onDecision: true } }, 'onDecision must be a function'],
    [{ ...good, observers: 'all' }, 'observers must be an object with at least one of the methods'],
    [{ ...good, observers: { onDecison: make } }, 'observers must be an object with at least one'],
    [
      { ...good, observers: [undefined] },
      'observers[0] must be an object with at least one of the',
    ],
    [{ ...good, observers: [{}, {}] }, 'observers[0] must be'],
    [{ ...good, observers: [{ onDecision: make }, { onDecison: make }] }, 'observers[1] must be'],
    [
      { ...good, observers: [{ onDecision: 5, onSkip: make }] },
      'observers[0].onDecision must be a',
    ],
    [{ ...good, observers: [{ onDecision: make, onSkip: null }] }, 'observers[0].onSkip must be a'],
    ...[1.1, Number.NaN, '0.5', undefined].map((share): [unknown, RegExp] => [
      { ...good, enforce: { share } },
      /^enforce\.share must be a number from 0 .*, but is /,
    ]),
    [{ ...good, enforce: 0.5 }, 'enforce must be a plain object, but is 0.5'],
    [{ ...good, enforce: { part: 1 } }, "enforce: there is no option 'part'"],
    [{ ...good, mode: 'dry-run' }, "mode must be one of 'enforce', 'shadow', but is 'dry-run'"],
    [
      { ...good, mode: 'shadow', enforce: { share: 0.5 } },
      "enforce cannot be combined with mode 'shadow'",
    ],
    // What a process holds, or decides by itself.
    [
      { ...hot, prefetch: '7s' },
      'prefetch must be 10 ms to a tenth of the window (6000 ms), but is',
    ],
    [{ ...hot, prefetch: '5ms' }, 'prefetch must be 10 ms to a tenth of the window'],
    [{ ...hot, prefetch: 0 }, 'prefetch must be whole milliseconds ≥ 1'],
    [
      { ...hot, window: '50ms', prefetch: '5ms' },
      'prefetch must be left out with a window below 100',
    ],
    [{ ...hot, countDenied: true }, 'prefetch must be left out beside countDenied'],
    [{ ...hot, algorithm: 'fixed-window' }, "algorithm 'fixed-window': only 'sliding-log'"],
    [{ ...leases, prefetch: '1s' }, "left out with algorithm 'concurrency'"],
    [
      { ...hot, store: plainStore },
      "prefetch of 'hot' must be left out on this store, which grants no",
    ],
    ...[0, 2.5, 1_001, '50', undefined].map((maxUncounted): [unknown, RegExp] => [
      { ...good, async: { maxUncounted } },
      /^async\.maxUncounted must be a whole number from 1 to 5, but is /,
    ]),
    [{ ...good, async: true }, 'async must be a plain object, but is true'],
    [{ ...good, async: { maxUncounted: 5, every: 1 } }, "async: there is no option 'every'"],
    [{ ...hot, async }, 'async must be left out beside prefetch'],
    [{ ...good, async, countDenied: true }, 'async must be left out beside countDenied'],
    [
      { ...queue, async },
      "async must be left out with algorithm 'leaky-bucket': only 'sliding-log'",
    ],
    [{ ...leases, async }, "async must be left out with algorithm 'concurrency'"],
    [{ ...good, penalty: { after: 5, within: '1m', for: '5m', async } }, /penalty.*async/],
    [{ ...bucket, reserve: true }, "reserve must be left out with algorithm 'token-bucket'"],
    [
      { ...good, algorithm: 'sliding-counter', reserve: true },
      "only 'sliding-log' and 'fixed-window'",
    ],
    [
      { ...good, window: '100ms', reserve: true },
      'reserve must be left out with a window below 200',
    ],
    [{ ...good, reserve: true, countDenied: true }, 'reserve must be left out beside countDenied'],
    [{ ...good, reserve: true, async }, 'reserve must be left out beside async'],
    [{ ...good, reserve: 800 }, 'reserve must be true or false, but is 800'],
    [{ ...good, reserve: true, store: plainStore }, 'this store, which grants no units'],
  ])('%j: %s', (options, message) => {
    expect(() => make(options)).toThrow(message)
  })

  it('an unknown one of any length is refused at once', () => {
    expect(() => make({ ...good, ['x'.repeat(999_999)]: 1 })).toThrow('there is no option')
  })

  it.each([0, -1, 0.5, Number.NaN, '5', Number.POSITIVE_INFINITY])(
    'maxKeys %j of the memory store is refused',
    (maxKeys) => {
      expect(() => memoryStore({ maxKeys: maxKeys as number })).toThrow('maxKeys must be')
    },
  )

  it('never shows more of a value than needed to recognise it', () => {
    expect(() => make({ ...good, name: `é${'s'.repeat(5_000)}` })).toThrow(/but is 'és{39}…'$/)
  })
})

describe('headroom', () => {
  const enforced = (limit: number | typeof unlimited, headroom: number) =>
    createLimiter({ limit, window: 1, headroom }).policies[0]?.limit

  it('reduces a limit, but not unlimited', () => {
    expect(enforced(30, 1 / 3)).toBe(20)
    expect(enforced(0, 0.5)).toBe(0)
    expect(enforced(unlimited, 0.1)).toBe(Number.POSITIVE_INFINITY)
  })

  it('is exact for shares of up to six decimals, whatever the limit', () => {
    const [limits, shares] = [fc.integer({ min: 1, max: 2 ** 47 - 1 }), fc.nat(500_000)]
    const law = fc.property(limits, shares, (limit, millionths) => {
      const exact = (BigInt(limit) * BigInt(1_000_000 - millionths)) / 1_000_000n
      expect(enforced(limit, millionths / 1_000_000)).toBe(Math.max(1, Number(exact)))
    })
    fc.assert(law)
  })

  it('is enforced and reported', async () => {
    const limiter = createLimiter({ limit: 10, window: '1m', headroom: 0.2 })
    expect((await limiter.consume('k')).outcomes).toMatchObject([{ limit: 8, remaining: 7 }])
    expect((await limiter.consume('k', { cost: 8 })).allowed).toBe(false)
    expect((await limiter.consume('k', { cost: 7 })).allowed).toBe(true)
  })

  it.each([
    [9, {}, false],
    [8, {}, true],
    [20, { burst: 20 }, true],
  ])("reduces a token bucket's burst too, unless given: %i of %j", async (cost, own, allowed) => {
    const limiter = createLimiter({ ...bucket, limit: 10, headroom: 0.2, ...own })
    expect((await limiter.consume('k', { cost })).allowed).toBe(allowed)
  })
})

it.each(algorithmNames)('a name has one kind of %s, and an error names both', (algorithm) => {
  const window = algorithm === 'concurrency' ? { lease: '3m' } : { window: '3m' }
  const minute = algorithm === 'concurrency' ? {} : { window: '1m' }
  const kinds = [...Object.values(testedAlgorithms[algorithm].counted), window]
  for (const one of kinds) {
    for (const other of kinds) {
      const store = memoryStore()
      const named = { store, name: 'p', limit: 3, algorithm, ...minute }
      make({ ...named, ...one })
      const again = () => make({ ...named, ...other })
      const told = new RegExp(`defined as ${algorithm} over (.+) and as ${algorithm} over (?!\\1;)`)
      if (one === other) again()
      else expect(again).toThrow(told)
    }
  }
})
