import { bindingPolicy } from '../values/binding-policy.ts'
import { type PolicyState, wholeSeconds } from '../values/policy-state.ts'
import type { DialectFormat, FieldOptions, HeaderLine } from './dialect-format.ts'
import { addIntegerPolicies } from './integer-policies.ts'

/** Revision 07: one policy, as a dictionary whose `reset` is required. */
export const draft7: DialectFormat = {
  name: 'draft-7',
  family: 'ietf',
  fieldNames: ['RateLimit', 'RateLimit-Policy'],
  add: addDictionary,
}

function addDictionary(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  { rejected }: FieldOptions,
): void {
  const binding = bindingPolicy(states, rejected)
  const reset = wholeSeconds(binding?.resetMs)
  if (binding === undefined || reset === undefined) return
  addIntegerPolicies(lines, states, binding)
  lines.push([
    'RateLimit',
    `limit=${binding.limit}, remaining=${binding.remaining}, reset=${reset}`,
  ])
}
