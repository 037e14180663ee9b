import { countsRequests, type PolicyState, shownLimit } from '../policy-state.ts'
import { wholeSeconds } from '../seconds.ts'
import type { HeaderLine } from './dialect-format.ts'

/**
 * `RateLimit-Policy` before draft-8: integers, where the window is required and no number may occur twice. What does
 * not fit is left out.
 */
export function addIntegerPolicies(lines: HeaderLine[], states: readonly PolicyState[]): void {
  const limits: number[] = []
  let policies = ''
  for (const state of states) {
    const limit = countsRequests(state) ? shownLimit(state) : undefined
    const window = wholeSeconds(state.windowMs)
    if (limit === undefined || window === undefined || limits.includes(limit)) continue
    limits.push(limit)
    policies += `${policies === '' ? '' : ', '}${limit};w=${window}`
  }
  if (policies !== '') lines.push(['RateLimit-Policy', policies])
}
