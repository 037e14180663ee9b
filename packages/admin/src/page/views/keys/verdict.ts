import type { KeyPolicy, Lookup } from '../../api/types.ts'
import { count, duration, percent, plain } from '../../words/format.ts'

/** The busiest keys are counted for the span, plus up to this time. */
const spans = [
  ['10m', 'eleven minutes'],
  ['1h', '71 minutes'],
  ['1m', 'two minutes'],
] as const
type Span = (typeof spans)[number][0]

/** Sorts policies: a block first, then those that deny, denied most, are unclear, or are full. */
export function byCause(policies: readonly KeyPolicy[]): readonly KeyPolicy[] {
  const { denialsOf } = denialsIn(policies)
  const rank = (of: KeyPolicy): number => {
    const { mode, allowed, isPenalty } = of
    if (mode === 'shadow') return 5
    if (allowed === false) return isPenalty ? 0 : 1
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
 * Returns the denials by enforced policies, in the same span for all: ten minutes, or an hour if
 * the cause denied nothing in ten minutes. A penalty denies long after its cause.
 */
export function denialsIn(policies: readonly KeyPolicy[]) {
  const inSpan =
    (span: Span) =>
    ({ mode, denied }: KeyPolicy): number =>
      mode === 'enforce' ? (denied[span] ?? 0) : 0
  const spanOf = (of: typeof policies) => spans.find(([span]) => of.some(inSpan(span)))
  const cause = spanOf(policies.filter(({ isPenalty }) => !isPenalty))
  const [span, words] = cause ?? spanOf(policies) ?? spans[1]
  return { span, words, denialsOf: inSpan(span) }
}

/** The used share, from 0 to 1. A bucket is full at its capacity. */
export function shareUsed({ capacity, limit, used = 0, allowed }: KeyPolicy): number {
  const most = capacity ?? limit
  return typeof most === 'number' && most > 0 ? used / most : allowed === false ? 1 : 0
}

/** Describes whether a key is refused, by which policy, for how long, and how often. */
export function verdictOn({ policies, isAway, inCode }: Lookup): {
  readonly tone: 'ok' | 'near' | 'deny'
  readonly words: string
} {
  const because = denialWords(policies)
  const byCode = inCode.map(({ policy, denied }) => `${policy} ${count(denied)}`).join(', ')
  const also =
    byCode && ` Policies set in the application’s code denied it within eleven minutes: ${byCode}.`
  if (isAway && policies.every(({ used, limit }) => (used ?? limit) === undefined)) {
    const [first] = byCause(policies)
    const most = because && `Denied most by ${first?.policy} lately.${because}`
    const known = most || 'There are no denials among the busiest keys.'
    return { tone: 'near', words: `${known} The store is unavailable, so its counts are unknown.` }
  }
  const sorted = byCause(policies).filter(({ mode }) => mode === 'enforce')
  const [denying, ...others] = sorted.filter(({ allowed }) => allowed === false)
  if (denying) {
    const { policy, isPenalty } = denying
    const waitMs = ({ retryAfterMs = Number.POSITIVE_INFINITY }: KeyPolicy) => retryAfterMs
    const [longest = denying] = others.toSorted((one, other) => waitMs(other) - waitMs(one))
    const until = `${policy}${waitOf(denying)}${because && !isPenalty ? '' : causeOf(denying)}.`
    const isLonger = waitMs(longest) > waitMs(denying)
    const then = isLonger ? ` ${longest.policy} denies it${waitOf(longest)}.` : ''
    return {
      tone: 'deny',
      words: `${isPenalty ? 'Blocked' : 'Denied'} by ${until}${then}${because}${also}`,
    }
  }
  const unclear = sorted.find(({ allowed }) => allowed === undefined)
  if (unclear) {
    return {
      tone: 'near',
      words: `The limit of ${unclear.policy} depends on the request.${because}${also}`,
    }
  }
  const [nearest] = sorted.toSorted((one, other) => shareUsed(other) - shareUsed(one))
  const near =
    nearest && shareUsed(nearest) > 0 ? `; nearest is ${nearest.policy}, ${usedOf(nearest)}` : ''
  return {
    tone: also ? 'near' : 'ok',
    words: `${also ? 'No policy in the policy file denies it now' : 'Allowed now'}${near}.${because}${also}`,
  }
}

export function waitOf({ retryAfterMs }: KeyPolicy): string {
  return retryAfterMs === undefined
    ? ', and waiting cannot help'
    : ` for another ${duration(retryAfterMs)}`
}

/** Describes the cause of a denial. A penalty may block a key manually. */
function causeOf(of: KeyPolicy): string {
  if (!of.isPenalty) return `: ${usedOf(of)}`
  if (of.withinMs === undefined) return ''
  return `: it blocks after ${plain(of.limit)} denied requests in ${duration(of.withinMs)}`
}

function usedOf(of: KeyPolicy): string {
  const most = of.capacity ?? of.limit
  const amount = typeof most === 'number' ? ` of ${count(most)}` : ''
  return `${count(of.used ?? 0)}${amount} used (${percent(shareUsed(of))})`
}

/** Describes how often each policy denied. A sum would count a request once per policy. */
function denialWords(policies: readonly KeyPolicy[]): string {
  const { words, denialsOf } = denialsIn(policies)
  const counted = policies
    .filter((each) => denialsOf(each) > 0)
    .sort((one, other) => denialsOf(other) - denialsOf(one))
  if (counted.length === 0) return ''
  const parts = counted.map((each) => `${each.policy} ${count(denialsOf(each))}`)
  return ` Denials within ${words}: ${parts.join(', ')}.`
}
