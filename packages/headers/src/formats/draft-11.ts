import { parseRateLimit } from '../parsers/rate-limit.ts'
import { parseRateLimitPolicy } from '../parsers/rate-limit-policy.ts'
import {
  countsRequests,
  effectiveResetMs,
  type PolicyState,
  shownLimit,
  shownRemaining,
  wholeSeconds,
} from '../values/policy-state.ts'
import { serialiseBytes, serialiseString } from '../values/structured-field.ts'
import type { DialectFormat, FieldOptions, HeaderLine } from './dialect-format.ts'

/** draft-ietf-httpapi-ratelimit-headers-11: every visible policy, in configuration order. */
export const draft11: DialectFormat = {
  name: 'draft-11',
  family: 'ietf',
  fieldNames: ['RateLimit', 'RateLimit-Policy'],
  add: addLists,
  join: joinLists,
}

function addLists(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  { rejected }: FieldOptions,
): void {
  let policies = ''
  let available = ''
  for (const state of states) {
    const limit = shownLimit(state)
    const item = limit === undefined ? undefined : policyItem(state, limit)
    if (limit === undefined || item === undefined) continue
    if (states.length > 1 && !isListed(state, states)) continue
    policies += policies === '' ? item.policy : `, ${item.policy}`

    const remaining = shownRemaining(state, limit)
    if (remaining === undefined) continue
    const left = leftOf(item, remaining, wholeSeconds(effectiveResetMs(state, rejected)))
    available += available === '' ? left : `, ${left}`
  }
  // RFC 9651 §4.1: an empty list is not sent at all.
  if (policies !== '') lines.push(['RateLimit-Policy', policies])
  if (available !== '') lines.push(['RateLimit', available])
}

/** The parts of a policy's items that do not change from one response to the next. */
interface PolicyItem extends Pick<PolicyState, 'windowMs' | 'unit' | 'vendor'> {
  readonly limit: number
  /** The serialised name. */
  readonly name: string
  readonly pk: string
  readonly policy: string
  /** The last text of each number of remaining units, with its seconds. */
  readonly left: Map<number, { readonly seconds: number | undefined; readonly text: string }>
}

const maxItems = 1_000
const maxTexts = 256

/** A text that Node has checked before saves 0.1 µs of the response. */
function leftOf({ name, pk, left }: PolicyItem, remaining: number, t: number | undefined): string {
  const known = left.get(remaining)
  if (known && known.seconds === t) return known.text
  const text = `${name};r=${remaining}${t === undefined ? '' : `;t=${t}`}${pk}`
  if (left.size >= maxTexts) left.clear()
  left.set(remaining, { seconds: t, text })
  return text
}

/**
 * The last item of each policy name. The map is cleared when it is full, in case a caller invents
 * names.
 */
const lastItems = new Map<string, PolicyItem>()

/**
 * Returns the parts of a policy's items; `undefined` if they cannot be serialised. Items with a
 * partition key are not cached: the caller can change the bytes of the key.
 */
function policyItem(state: PolicyState, limit: number): PolicyItem | undefined {
  const { windowMs, unit, vendor } = state
  const last = state.pk === undefined ? lastItems.get(state.name) : undefined
  const isSame = last?.limit === limit && last.windowMs === windowMs
  if (isSame && last.unit === unit && last.vendor === vendor) return last
  const name = serialiseString(state.name)
  const qu = unitParameter(state)
  if (name === undefined || qu === undefined) return undefined
  const pk = state.pk === undefined ? '' : `;pk=${serialiseBytes(state.pk)}`
  const seconds = wholeSeconds(windowMs)
  const w = seconds === undefined ? '' : `;w=${seconds}`
  const flag = vendor !== undefined && vendorSyntax.test(vendor) ? `;${vendor}` : ''
  const policy = `${name};q=${limit}${qu}${w}${pk}${flag}`
  const item = { windowMs, unit, vendor, limit, name, pk, policy, left: new Map() }
  if (lastItems.size >= maxItems) lastItems.clear()
  if (pk === '') lastItems.set(state.name, item)
  return item
}

/**
 * Returns the `qu` parameter: empty for requests, the default; `undefined` for a unit that cannot
 * be serialised. `q` would be misleading without its unit.
 */
function unitParameter(state: PolicyState): string | undefined {
  if (state.unit === undefined || countsRequests(state)) return ''
  const unit = serialiseString(state.unit)
  return unit === undefined ? undefined : `;qu=${unit}`
}

/** A key of a parameter that does not replace a standard parameter. */
const vendorSyntax = /^(?!(?:q|qu|w|pk)$)[a-z*][a-z0-9_.*-]*$/

/**
 * Returns whether a policy is the one of its name that is listed. Chained limiters may share a
 * name, and two items with the same name would contradict each other. The policy with fewer units
 * left is listed; if equal, the first. Unknown counts as more than any number.
 */
function isListed(state: PolicyState, states: readonly PolicyState[]): boolean {
  const same = states.filter(({ name }) => name === state.name)
  return same.length === 1 || same.sort((a, b) => unitsLeft(a) - unitsLeft(b))[0] === state
}

function unitsLeft(state: PolicyState): number {
  const limit = shownLimit(state)
  if (limit === undefined) return Number.POSITIVE_INFINITY
  return shownRemaining(state, limit) ?? Number.MAX_VALUE
}

const member = /(?:"(?:\\.|[^"\\])*"|[^",])+/g

/**
 * Joins two lists, theirs first. Items with a type other than in the drafts since -08, and items
 * with a name in our list, are dropped, since no client could read them.
 */
function joinLists(
  name: string,
  theirs: readonly string[],
  ours: string | undefined,
): string | undefined {
  if (theirs.length === 0) return ours
  const parse = name === 'RateLimit' ? parseRateLimit : parseRateLimitPolicy
  const taken = new Set(ours === undefined ? [] : parse(ours).map((item) => item.name))
  const members = (theirs.join(',').match(member) ?? []).flatMap((text) => {
    const [item] = parse(text)
    if (item?.name === undefined || taken.has(item.name)) return []
    taken.add(item.name)
    return [text.trim()]
  })
  if (ours !== undefined) members.push(ours)
  return members.length === 0 ? undefined : members.join(', ')
}
