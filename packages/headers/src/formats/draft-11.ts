import { countsRequests, type PolicyState, shownLimit, shownRemaining } from '../policy-state.ts'
import { effectiveResetMs } from '../retry-after.ts'
import { wholeSeconds } from '../seconds.ts'
import { isKey, serialiseBytes, serialiseString } from '../structured-field.ts'
import type { DialectFormat, FormatOptions, HeaderLine } from './dialect-format.ts'
import { isEclipsed } from './eclipsed.ts'

/** draft-ietf-httpapi-ratelimit-headers-11: every visible policy, in the order of configuration. */
export const draft11: DialectFormat = {
  fieldNames: ['RateLimit', 'RateLimit-Policy'],
  add: addLists,
}

function addLists(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  { rejected }: FormatOptions,
): void {
  let policies = ''
  let available = ''
  for (const [index, state] of states.entries()) {
    const limit = shownLimit(state)
    const name = limit === undefined ? undefined : serialiseString(state.name)
    const unit = unitParameter(state)
    if (limit === undefined || name === undefined || unit === undefined) continue
    if (states.length > 1 && isEclipsed(state, index, states)) continue

    const pk = state.pk === undefined ? '' : `;pk=${serialiseBytes(state.pk)}`
    const policy = `${name};q=${limit}${unit}${seconds('w', state.windowMs)}${pk}${vendorParameter(state)}`
    policies += policies === '' ? policy : `, ${policy}`

    const remaining = shownRemaining(state, limit)
    if (remaining === undefined) continue
    const item = `${name};r=${remaining}${seconds('t', effectiveResetMs(state, rejected))}${pk}`
    available += available === '' ? item : `, ${item}`
  }
  // RFC 9651 §4.1: an empty list is no field at all.
  if (policies !== '') lines.push(['RateLimit-Policy', policies])
  if (available !== '') lines.push(['RateLimit', available])
}

/** Empty for requests, the default; `undefined` for a unit that cannot be written: without it, `q` would be a lie. */
function unitParameter(state: PolicyState): string | undefined {
  if (state.unit === undefined || countsRequests(state)) return ''
  const unit = serialiseString(state.unit)
  return unit === undefined ? undefined : `;qu=${unit}`
}

function seconds(key: string, durationMs: number | undefined): string {
  const value = wholeSeconds(durationMs)
  return value === undefined ? '' : `;${key}=${value}`
}

const ownKeys = ['q', 'qu', 'w', 'pk']

/** A vendor parameter is a comment; one that cannot be written, or would replace a real parameter, is left out. */
function vendorParameter({ vendor }: PolicyState): string {
  if (vendor === undefined || !isKey(vendor) || ownKeys.includes(vendor)) return ''
  return `;${vendor}`
}
