import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { algorithmNames } from '@sluice/core'
import { algorithms, besideGrants, countsBeyond, type OptionForm } from '@sluice/core/backend'
import { limitSchema } from './limit-schema.ts'
import {
  closed,
  cost,
  duration,
  failureMode,
  flag,
  key,
  name,
  named,
  oneOf,
  optional,
  policyMode,
  share,
  whole,
} from './parts.ts'

/** The options that say when units are given back. */
export const settlement: TProperties = {
  chargeWhen: named('Gives units back unless this function of request and response is true.'),
  refundWhen: named('Gives units back when this function of request and response is true.'),
}

/** Fields of a policy that every algorithm has. */
const policyFields: TProperties = {
  limit: limitSchema,
  ...optional({
    headroom: Type.Number({
      minimum: 0,
      maximum: 0.5,
      title: 'a number from 0 to 0.5',
      description: 'The share of the limit that is left free.',
    }),
    key,
    cost,
    hidden: flag('Enforced, and never named in a response.'),
    mode: policyMode,
    enforce: Type.Union([closed({ share }), named('')], {
      title: '{ share: 0 to 1 }, or { by: name }',
      description: 'For whom the policy is enforced; for everybody else it is in shadow.',
    }),
    unit: oneOf(
      ['requests', 'content-bytes', 'concurrent-requests'],
      'The unit that clients are told.',
    ),
    failureMode,
    ...settlement,
  }),
}

const async = closed(
  { maxUncounted: whole('Units of a key that one process may admit before they count.', 1) },
  { description: 'Decides by the last known state of a key, and tells the store afterwards.' },
)
const windowed = {
  window: duration(`Length of the window: milliseconds, or a text such as '10s'.`),
  ...optional({
    countDenied: flag('Charges this policy for every denied request too.'),
    reach: oneOf(['region', 'global'], 'The place where a store with regions decides.'),
  }),
}

/** The fields that an algorithm adds. */
function fieldsOf(name: (typeof algorithmNames)[number]): TProperties {
  const { counts, options } = algorithms[name]
  const own = Object.entries(options.fields).map(([field, form]) => [field, schemaOf(form)])
  return {
    ...(counts === 'units' && windowed),
    ...optional({
      ...Object.fromEntries(own),
      ...(besideGrants[name] && {
        prefetch: duration('Life of the grants that a process takes for hot keys.'),
      }),
      ...(countsBeyond(name) && { async }),
    }),
  }
}

function schemaOf(option: OptionForm): TSchema {
  if (option.form === 'text') return Type.Literal(option.text)
  return option.form === 'units' ? whole(option.about, option.min) : duration(option.about)
}

function variants(own: TProperties): TSchema[] {
  // The first algorithm stands for policies that name none.
  return algorithmNames.map((algorithm, index) => {
    const literal = Type.Literal(algorithm, { description: 'The algorithm that counts.' })
    return closed({
      ...own,
      algorithm: index === 0 ? Type.Optional(literal) : literal,
      ...policyFields,
      ...fieldsOf(algorithm),
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
