import type { ParsedPolicy } from './parsed-rate-limit.ts'
import { dictionaryValues, isInteger, listItems } from './structured-text.ts'

/**
 * Parses `RateLimit` of draft-8 to draft-11, and of the next draft, which renames `r` and `t` to
 * `a` and `w`, and adds the cost `c`. Malformed items are ignored, and so is a field that is not a
 * List.
 */
export function parseRateLimit(text: string | undefined): ParsedPolicy[] {
  return listItems(text).flatMap(({ value: name, parameters }): ParsedPolicy[] => {
    const { r, t, a, w, c, pk } = parameters
    const [remaining, reset] = r === undefined ? [a, w] : [r, t]
    if (typeof name !== 'string' || !isInteger(remaining)) return []
    if (reset !== undefined && !isInteger(reset)) return []
    if (pk !== undefined && !(pk instanceof ArrayBuffer)) return []
    const resetMs = reset === undefined ? undefined : reset * 1000
    const cost = isInteger(c) ? c : undefined
    return [{ name, remaining, resetMs, pk: pk && new Uint8Array(pk), cost }]
  })
}

/** Parses `RateLimit` of draft-7: a Dictionary that requires `limit` and `reset`. */
export function parseDraft7(text: string | undefined): ParsedPolicy[] {
  const { limit, remaining, reset } = dictionaryValues(text)
  if (!isInteger(limit) || !isInteger(reset)) return []
  if (remaining !== undefined && !isInteger(remaining)) return []
  return [{ name: undefined, limit, remaining, resetMs: reset * 1000 }]
}

/**
 * Parses `RateLimit-Partition` of the draft after draft-11: the dimensions by which each policy
 * counts separately, by policy name.
 */
export function parsePartitions(text = ''): Map<unknown, ParsedPolicy['partition']> {
  return new Map(
    listItems(text).flatMap(({ value: name, parameters }) => {
      const values = Object.values(parameters)
      const isLegal = values.every((value) => value === true || typeof value === 'string')
      return typeof name === 'string' && isLegal ? [[name, parameters]] : []
    }),
  )
}
