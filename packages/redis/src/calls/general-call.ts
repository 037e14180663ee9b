import type { Check, GrantCheck } from '@sluice/core'
import type { QueuedCheck, QueuedRequest } from '../model/queued-request.ts'
import { isShortLog, luaSetting, mayHaveGrants } from '../scripts/usual-states.ts'

/**
 * Consecutive asks with the same operation and policies. Only their keys are encoded one by one.
 */
interface Group {
  readonly op: QueuedRequest['op']
  /** Policy numbers, starting at 1. */
  readonly policies: readonly number[]
  readonly asks: QueuedRequest[]
}

/**
 * Encodes the asks of a call for `lua/decide.lua`: each policy once, then groups of requests.
 * @param now approximate time of Redis (ms)
 * @param apart grants of the only key, if they may be on another node
 * @param number of a call that gives units back and that the client may retry
 */
export function generalCall(
  asks: readonly QueuedRequest[],
  now: number,
  { apart, number }: { readonly apart: string | undefined; readonly number: number | undefined },
): string {
  const known: Check[] = []
  const groups: Group[] = []
  for (const ask of asks) {
    const { op } = ask
    const policies = ask.checks.map((check) => numberOf(check, known))
    const last = groups.at(-1)
    if (last?.op === op && last.policies.join() === policies.join()) last.asks.push(ask)
    else groups.push({ op, policies, asks: [ask] })
  }
  const policies = known.map((check) => policyOf(check, now))
  return JSON.stringify({ policies, groups: groups.map(fieldsOf), apart, number })
}

/** Returns the number of a policy and limit, starting at 1; adds it if it is new. */
function numberOf(check: Check, known: Check[]): number {
  const { policy, limit } = check
  const place = known.findIndex((one) => one.policy === policy && one.limit === limit)
  return place === -1 ? known.push(check) : place + 1
}

function policyOf(check: Check, now: number): object {
  const { policy, limit } = check
  return {
    // Lua knows granted-log as an algorithm too.
    algorithm: policy.counting,
    limit,
    window: policy.windowMs,
    setting: luaSetting(check, now),
    is_short: isShortLog(check),
    count_denied: policy.countDenied,
  }
}

/** Omits values that are the same for every ask, as most are. Spread fields would take 5 µs. */
function fieldsOf({ op, policies, asks }: Group): object {
  const each = <T>(write: (check: QueuedCheck) => T): readonly T[] =>
    asks.flatMap(({ checks }) => checks.map(write))
  const isHeld = op === 'refund' || op === 'release' || op === 'renew'
  // Terms of grants are sent as receipts: no group has both.
  const hasTerms = op === 'grant' || (op === 'reset' && asks.some(mayHaveGrants))
  return {
    op,
    policies,
    requests: asks.length,
    costs: asks.every(costsOne) ? undefined : each(({ cost }) => cost),
    receipts: isHeld ? each(receiptOf).flat() : hasTerms ? each(termsOf) : undefined,
  }
}

function costsOne({ checks }: QueuedRequest): boolean {
  return checks.every(({ cost }) => cost === 1)
}

function receiptOf({ receipt, refunded = 0 }: QueuedCheck): readonly number[] {
  return [receipt?.at ?? 0, Number(receipt?.incarnation ?? 0), refunded]
}

const closingTerms: Omit<GrantCheck['terms'], 'closed'> = { id: 0, lifeMs: 0, divisor: 1 }

/** The terms as `lua/grants.lua` reads them. */
function termsOf({ terms, closed = terms?.closed }: QueuedCheck): readonly number[] {
  if (!closed) return []
  const { id, lifeMs, divisor, kept = [] } = terms ?? closingTerms
  const renewed = kept.flatMap((one) => [-one.id, one.left, one.freed])
  return [id, lifeMs, divisor, ...renewed, ...closed.flatMap((one) => [one.id, one.spent])]
}
