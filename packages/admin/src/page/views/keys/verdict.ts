import type { KeyPolicy, Lookup } from '../../api/types.ts'
import { count, duration, percent } from '../../words/format.ts'

/** The busiest keys are counted for the span, and up to this time. */
export const spans = [
  ['1m', 'two minutes'],
  ['10m', 'eleven minutes'],
  ['1h', '71 minutes'],
] as const

/** Sorts policies: first those that block, then those that deny, are unclear, or are full. */
export function byCause(policies: readonly KeyPolicy[]): readonly KeyPolicy[] {
  const rank = ({ mode, allowed, isPenalty }: KeyPolicy): number => {
    if (allowed === false) return mode === 'shadow' ? 3 : isPenalty ? 0 : 1
    return allowed === undefined ? 2 : 4
  }
  return [...policies].sort(
    (one, other) => rank(one) - rank(other) || shareUsed(other) - shareUsed(one),
  )
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
  if (isAway) {
    const denials = denialsOf(policies) ?? ': no denials among the busiest keys'
    return { tone: 'near', words: `The store is away, and what it counts is unknown${denials}.` }
  }
  const sorted = byCause(policies).filter(({ mode }) => mode === 'enforce')
  const [first] = sorted
  if (first?.allowed === false) {
    const { policy, isPenalty, retryAfterMs } = first
    const until =
      retryAfterMs === undefined ? 'and waiting cannot help' : `for ${duration(retryAfterMs)} more`
    const because = denialsOf(policies) ?? (isPenalty ? '' : `: ${usedOf(first)}`)
    return {
      tone: 'deny',
      words: `${isPenalty ? 'Blocked' : 'Denied'} by ${policy}, ${until}${because}.`,
    }
  }
  if (first?.allowed === undefined && first) {
    return { tone: 'near', words: `It depends on the request: the limit of ${first.policy} does.` }
  }
  const near = first && shareUsed(first) > 0 ? `; nearest is ${first.policy}, ${usedOf(first)}` : ''
  return { tone: 'ok', words: `Allowed now${near}.` }
}

function usedOf(of: KeyPolicy): string {
  const most = of.capacity ?? of.limit
  const amount = typeof most === 'number' ? ` of ${count(most)}` : ''
  return `${count(of.used ?? 0)}${amount} used (${percent(shareUsed(of))})`
}

/** `: 300 denials within two minutes, mostly search`, as far as the busiest keys tell. */
function denialsOf(policies: readonly KeyPolicy[]): string | undefined {
  for (const [span, words] of spans) {
    const counted = policies
      .filter(({ mode, isPenalty }) => mode === 'enforce' && !isPenalty)
      .map(({ policy, denied }) => ({ policy, denials: denied[span] ?? 0 }))
      .sort((one, other) => other.denials - one.denials)
    const all = counted.reduce((sum, { denials }) => sum + denials, 0)
    const most = counted.length > 1 ? `, mostly ${counted[0]?.policy}` : ''
    if (all > 0) return `: ${count(all)} ${all === 1 ? 'denial' : 'denials'} within ${words}${most}`
  }
  return undefined
}
