import type { KeyPolicy, Lookup } from '../../api/types.ts'
import { count, duration, percent } from '../../words/format.ts'

/** The busiest keys are counted for the span, and up to this time. */
export const spans = [
  ['1m', 'two minutes'],
  ['10m', 'eleven minutes'],
  ['1h', '71 minutes'],
] as const

/** Sorts policies: first a block, then those that deny or denied most, are unclear, or are full. */
export function byCause(policies: readonly KeyPolicy[]): readonly KeyPolicy[] {
  const { denialsOf } = recent(policies)
  const rank = (of: KeyPolicy): number => {
    const { mode, allowed, isPenalty } = of
    if (allowed === false && mode === 'enforce') return isPenalty ? 0 : 1
    if (denialsOf(of) > 0) return 1
    return allowed === undefined ? 2 : allowed ? 4 : 3
  }
  return [...policies].sort(
    (one, other) =>
      rank(one) - rank(other) ||
      denialsOf(other) - denialsOf(one) ||
      shareUsed(other) - shareUsed(one),
  )
}

/**
 * Returns the denials by enforced policies, in the shortest span that has any of them. A penalty
 * denies long after its cause.
 */
function recent(policies: readonly KeyPolicy[]) {
  const denialsIn =
    (span: (typeof spans)[number][0]) =>
    ({ mode, denied }: KeyPolicy): number =>
      mode === 'enforce' ? (denied[span] ?? 0) : 0
  const spanOf = (of: typeof policies) => spans.find(([span]) => of.some(denialsIn(span)))
  const cause = spanOf(policies.filter(({ isPenalty }) => !isPenalty))
  const [span, words] = cause ?? spanOf(policies) ?? spans[0]
  return { words, denialsOf: denialsIn(span) }
}

/** The share of 1 that is used. A bucket is full at what it holds. */
export function shareUsed({ capacity, limit, used = 0, allowed }: KeyPolicy): number {
  const most = capacity ?? limit
  return typeof most === 'number' && most > 0 ? used / most : allowed === false ? 1 : 0
}

/** Says in one line whether a key is refused, by which policy, for how long, and why. */
export function verdictOn({ policies, isAway }: Lookup): {
  readonly tone: 'ok' | 'near' | 'deny'
  readonly words: string
} {
  const because = denialWords(policies)
  if (isAway && policies.every(({ used, limit }) => (used ?? limit) === undefined)) {
    const denials = because || ': no denials among the busiest keys'
    return { tone: 'near', words: `The store is away, and what it counts is unknown${denials}.` }
  }
  const sorted = byCause(policies).filter(({ mode }) => mode === 'enforce')
  const denying = sorted.find(({ allowed }) => allowed === false)
  if (denying) {
    const { policy, isPenalty, retryAfterMs } = denying
    const until =
      retryAfterMs === undefined ? 'and waiting cannot help' : `for ${duration(retryAfterMs)} more`
    const why = because || (isPenalty ? '' : `: ${usedOf(denying)}`)
    return {
      tone: 'deny',
      words: `${isPenalty ? 'Blocked' : 'Denied'} by ${policy}, ${until}${why}.`,
    }
  }
  const unclear = sorted.find(({ allowed }) => allowed === undefined)
  if (unclear) {
    return { tone: 'near', words: `The limit of ${unclear.policy} depends on the request.` }
  }
  const [nearest] = sorted.toSorted((one, other) => shareUsed(other) - shareUsed(one))
  const near =
    nearest && shareUsed(nearest) > 0 ? `; nearest is ${nearest.policy}, ${usedOf(nearest)}` : ''
  return { tone: 'ok', words: `Allowed now${near}${because}.` }
}

function usedOf(of: KeyPolicy): string {
  const most = of.capacity ?? of.limit
  const amount = typeof most === 'number' ? ` of ${count(most)}` : ''
  return `${count(of.used ?? 0)}${amount} used (${percent(shareUsed(of))})`
}

/** `: 964 denials within two minutes (penalty 664, search 300)`, as the busiest keys tell. */
function denialWords(policies: readonly KeyPolicy[]): string {
  const { words, denialsOf } = recent(policies)
  const counted = policies
    .map((each) => ({ policy: each.policy, denials: denialsOf(each) }))
    .filter(({ denials }) => denials > 0)
    .sort((one, other) => other.denials - one.denials)
  const all = counted.reduce((sum, { denials }) => sum + denials, 0)
  const parts = counted.map(({ policy, denials }) => `${policy} ${count(denials)}`)
  if (all === 0) return ''
  return `: ${count(all)} ${all === 1 ? 'denial' : 'denials'} within ${words} (${parts.join(', ')})`
}
