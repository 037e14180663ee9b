import type { Dialect, PolicyState } from '@sluice/headers'
import fc from 'fast-check'

export const ietfDialects: readonly Dialect[] = ['draft-11', 'draft-7', 'draft-6']
export const legacyDialects: readonly Dialect[] = ['legacy', 'legacy-delta', 'legacy-github']
export const allDialects: readonly Dialect[] = [...ietfDialects, ...legacyDialects]

const printable = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 40 })
const duration = fc.integer({ min: 0, max: 5_000_000_000 })

/** States as a limiter makes them: sound numbers, legal and distinct names. */
export const soundStates: fc.Arbitrary<PolicyState[]> = fc.uniqueArray(
  fc
    .record({
      name: printable,
      limit: fc.integer({ min: 0, max: 1_000_000 }),
      windowMs: fc.option(fc.integer({ min: 1, max: 5_000_000_000 }), { nil: undefined }),
      left: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      resetMs: fc.option(duration, { nil: undefined }),
      retryAfterMs: fc.oneof(duration, fc.constant(Number.POSITIVE_INFINITY)),
      denied: fc.boolean(),
      hidden: fc.boolean(),
      cost: fc.nat({ max: 10 }),
      unit: fc.constantFrom(undefined, 'requests', 'content-bytes', 'concurrent-requests'),
      pk: fc.option(fc.uint8Array({ maxLength: 12 }), { nil: undefined }),
      vendor: fc.constantFrom(undefined, 'acme-shadow'),
    })
    .map(({ left, ...state }) => ({
      ...state,
      remaining: left === undefined ? undefined : left * state.limit,
    })),
  { selector: ({ name }) => name, maxLength: 5 },
)

const anyText = fc.oneof(
  printable,
  fc.string({ unit: 'binary' }),
  fc.constantFrom('x\r\nSet-Cookie: a=b', '\0', '"', '\\', '\ud800', 'naïve', '', ' '),
)
const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(-0, 1e15, 1e21, 5e-324, Number.MAX_VALUE, -Infinity, Infinity, Number.NaN),
)
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const maybeNumber = maybe(anyNumber)

/** Everything that the type lets through. */
export const hostileStates: fc.Arbitrary<PolicyState[]> = fc.array(
  fc.record({
    ...{ name: anyText, limit: anyNumber, windowMs: maybeNumber, remaining: maybeNumber },
    ...{ resetMs: maybeNumber, retryAfterMs: maybeNumber, cost: maybeNumber },
    ...{ denied: maybe(fc.boolean()), hidden: maybe(fc.boolean()), pk: maybe(fc.uint8Array()) },
    ...{ unit: maybe(anyText), vendor: maybe(anyText) },
  }),
  { maxLength: 4 },
)

export const anyTime: fc.Arbitrary<number> = anyNumber

const fragments = fc.constantFrom(
  ...'"a"|"a";r=1|;t=|;w=60|;q=|limit=|reset=5|, |,|100|-1|1.5|:QQ==:|:|"|\\|(|)|?1|@1|%"'.split(
    '|',
  ),
  ...['GMT', 'Fri, 20 Nov 2026 12:00:30 GMT'],
)

/** Header values: noise, and noise that is nearly right. */
export const anyFieldValue: fc.Arbitrary<string> = fc.oneof(
  anyText,
  fc
    .array(fc.oneof({ weight: 4, arbitrary: fragments }, anyText), { maxLength: 12 })
    .map((parts) => parts.join('')),
)
