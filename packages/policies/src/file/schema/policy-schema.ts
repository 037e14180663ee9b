import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { algorithmNames } from '@sluice/core'
import { limitSchema } from './limit-schema.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  key,
  name,
  named,
  oneOf,
  policyMode,
  share,
  whole,
} from './parts.ts'

/** The options that say when units are given back. */
export const settlement: TProperties = {
  chargeWhen: Type.Optional(
    named('Gives units back unless this function of request and response is true.'),
  ),
  refundWhen: Type.Optional(
    named('Gives units back when this function of request and response is true.'),
  ),
}

/** Fields of a policy that every algorithm has. */
const policyFields: TProperties = {
  limit: limitSchema,
  headroom: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 0.5,
      title: 'a number from 0 to 0.5',
      description: 'The share of the limit that is left free.',
    }),
  ),
  key: Type.Optional(key),
  cost: Type.Optional(cost),
  hidden: Type.Optional(Type.Boolean({ description: 'Enforced, and never named in a response.' })),
  mode: Type.Optional(policyMode),
  enforce: Type.Optional(
    Type.Union([closed({ share }), named('')], {
      title: '{ share: 0 to 1 }, or { by: name }',
      description: 'For whom the policy is enforced; for everybody else it is in shadow.',
    }),
  ),
  unit: Type.Optional(
    oneOf(['requests', 'content-bytes', 'concurrent-requests'], {
      description: 'The unit that clients are told.',
    }),
  ),
  failureMode: Type.Optional(failureMode),
  ...settlement,
}

const countDenied = Type.Optional(
  Type.Boolean({ description: 'Charges this policy for every denied request too.' }),
)
const async = Type.Optional(
  closed(
    { maxUncounted: whole('Units of a key that one process may admit before they count.', 1) },
    { description: 'Decides by the last known state of a key, and tells the store afterwards.' },
  ),
)
const reach = Type.Optional(
  oneOf(['region', 'global'], { description: 'The place where a store with regions decides.' }),
)
const window = duration(`Length of the window: milliseconds, or a text such as '10s'.`)
const windowed = { window, countDenied, reach }

/** The options that each algorithm adds. The first one stands for policies that name none. */
const algorithmFields = {
  'sliding-log': {
    ...windowed,
    resolution: Type.Optional(duration('Rounds times up, to bound the bytes of a key.')),
    prefetch: Type.Optional(duration('Life of the grants that a process takes for hot keys.')),
    async,
  },
  'sliding-counter': { ...windowed, async },
  'fixed-window': { ...windowed, async, align: Type.Optional(Type.Literal('clock')) },
  'token-bucket': {
    ...windowed,
    burst: Type.Optional(whole('Units that may be taken at once after a pause.', 1)),
  },
  'leaky-bucket': {
    ...windowed,
    queue: Type.Optional(whole('Requests that may wait.')),
    maxDelay: Type.Optional(duration('The longest that a request waits.')),
  },
  concurrency: {
    lease: Type.Optional(duration('How long a request may be in flight without a sign of life.')),
    retryAfter: Type.Optional(duration('The wait that a refused client is told.')),
  },
} satisfies Record<(typeof algorithmNames)[number], TProperties>

function variants(own: TProperties): TSchema[] {
  return algorithmNames.map((algorithm, index) => {
    const literal = Type.Literal(algorithm, { description: 'The algorithm that counts.' })
    return closed({
      ...own,
      algorithm: index === 0 ? Type.Optional(literal) : literal,
      ...policyFields,
      ...algorithmFields[algorithm],
    })
  })
}

export const policySchema: TSchema = Type.Union(
  variants({ name: name('The name of the quota, in headers, metrics and keys.') }),
  {
    title: 'a policy, as in { name: burst, limit: 20, window: 1s }',
    examples: [{ name: 'burst', limit: 20, window: '1s' }],
  },
)

export const profileSchema: TSchema = Type.Union(variants({}), {
  title: 'a policy without a name, as in { limit: 20, window: 1s }',
})
