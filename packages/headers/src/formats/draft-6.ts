import { bindingPolicy } from '../values/binding-policy.ts'
import { type PolicyState, wholeSeconds } from '../values/policy-state.ts'
import type { DialectFormat, FieldOptions, HeaderLine } from './dialect-format.ts'
import { addIntegerPolicies } from './integer-policies.ts'

/** Revisions 04 to 06: one policy, a field per number; a limit without a reset is forbidden. */
export const draft6: DialectFormat = {
  name: 'draft-6',
  family: 'ietf',
  fieldNames: ['RateLimit-Limit', 'RateLimit-Policy', 'RateLimit-Remaining', 'RateLimit-Reset'],
  add: addFields,
}

function addFields(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  { rejected }: FieldOptions,
): void {
  const binding = bindingPolicy(states, rejected)
  const reset = wholeSeconds(binding?.resetMs)
  if (binding === undefined || reset === undefined) return
  addIntegerPolicies(lines, states, binding)
  lines.push(
    ['RateLimit-Limit', `${binding.limit}`],
    ['RateLimit-Remaining', `${binding.remaining}`],
    ['RateLimit-Reset', `${reset}`],
  )
}
