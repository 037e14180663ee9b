import type { ParsedPolicy } from './parsed-rate-limit.ts'
import {
  bytesOf,
  type FieldItem,
  isInteger,
  isOptionalBytes,
  isOptionalInteger,
  listItems,
} from './structured-text.ts'

/**
 * Parses `RateLimit` of draft-8 to draft-11, and of the next draft, which renames `r` and `t` to
 * `a` and `w`, and adds the cost `c`. Malformed items are ignored, and so is a field that is not a
 * List.
 */
export function parseRateLimit(text: string | undefined): ParsedPolicy[] {
  return listItems(text).flatMap(stateOf)
}

function stateOf({ value: name, parameters }: FieldItem): ParsedPolicy[] {
  const [left, window] = parameters.has('r') ? (['r', 't'] as const) : (['a', 'w'] as const)
  const remaining = parameters.get(left)
  const reset = parameters.get(window)
  const cost = parameters.get('c')
  const pk = parameters.get('pk')
  if (typeof name !== 'string' || !isInteger(remaining, 0)) return []
  if (!isOptionalInteger(reset, 0) || !isOptionalBytes(pk)) return []
  return [
    {
      name,
      remaining,
      resetMs: reset === undefined ? undefined : reset * 1000,
      pk: bytesOf(pk),
      cost: isInteger(cost, 0) ? cost : undefined,
    },
  ]
}

/**
 * Parses `RateLimit-Partition` of the draft after draft-11: the dimensions by which each policy
 * counts separately, by policy name.
 */
export function parsePartitions(text: string | undefined): Map<string, ParsedPolicy['partition']> {
  return new Map(
    listItems(text).flatMap(({ value: name, parameters }) => {
      const isLegal = [...parameters.values()].every((of) => of === true || typeof of === 'string')
      return typeof name === 'string' && isLegal ? [[name, Object.fromEntries(parameters)]] : []
    }),
  )
}
