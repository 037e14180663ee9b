import type { Check, GrantCheck, Policy } from '@sluice/core'
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

interface OwnFields {
  /** Grants of the only key, if they may be on another node. */
  readonly apart: string | undefined
  /** Number of a call that gives units back and that the client may retry. */
  readonly number: number | undefined
}

/**
 * Encodes the asks of a call for `lua/decide.lua`: each policy once, then groups of requests.
 * @param now approximate time of Redis (ms)
 */
export function generalCall(asks: readonly QueuedRequest[], now: number, own: OwnFields): string {
  const known: Check[] = []
  const groups: Group[] = []
  for (const ask of asks) {
    const { op } = ask
    const policies = ask.checks.map((check) => numberOf(check, known))
    const last = groups.at(-1)
    if (last?.op === op && last.policies.join() === policies.join()) last.asks.push(ask)
    else groups.push({ op, policies, asks: [ask] })
  }
  const policies = known.map((check) => encodePolicy(check, now))
  const rest = JSON.stringify(own).slice(1)
  return `{"policies":[${policies}],"groups":[${groups.map(encodeGroup)}]${rest === '}' ? '' : ','}${rest}`
}

/** Encodes the only grant of a call for `lua/usual-grant.lua`. */
export function grantCall(check: QueuedCheck): string {
  const { policy, limit, cost } = check
  return `[${limit},${policy.windowMs},${luaSetting(check) ?? 1},${cost},${termsOf(check)}]`
}

/** Returns the number of a policy and limit, starting at 1; adds it if it is new. */
function numberOf(check: Check, known: Check[]): number {
  const { policy, limit } = check
  const place = known.findIndex((one) => one.policy === policy && one.limit === limit)
  return place === -1 ? known.push(check) : place + 1
}

function encodePolicy(check: Check, now: number): string {
  const { policy, limit } = check
  const setting = luaSetting(check, now)
  const known = encodedPolicies.get(policy)
  if (known?.limit === limit && known.setting === setting) return known.json
  const json = JSON.stringify({
    // Lua knows granted-log as an algorithm too.
    algorithm: policy.counting,
    limit,
    window: policy.windowMs,
    setting,
    is_short: isShortLog(check),
    count_denied: policy.countDenied,
  })
  encodedPolicies.set(policy, { limit, setting, json })
  return json
}

/** Last encoding of each policy, since it is the same for most calls. */
const encodedPolicies = new WeakMap<
  Policy,
  { readonly limit: number; readonly setting: unknown; readonly json: string }
>()

/** Encodes a group as JSON. Omits values that are the same for every ask, as most are. */
function encodeGroup({ op, policies, asks }: Group): string {
  const allCostOne = asks.every(({ checks }) => checks.every(({ cost }) => cost === 1))
  const hasReceipts = op === 'refund' || op === 'release' || op === 'renew'
  // Terms of grants are sent as receipts: no group has both.
  const hasTerms = op === 'grant' || (op === 'reset' && asks.some(mayHaveGrants))
  const lists = [
    allCostOne ? '' : list('costs', asks, ({ cost }) => [cost]),
    hasReceipts ? list('receipts', asks, receiptOf) : '',
    hasTerms ? list('receipts', asks, termsOf) : '',
  ]
  return `{"op":"${op}","policies":[${policies.join()}],"requests":${asks.length}${lists.join('')}}`
}

function list(
  name: string,
  asks: readonly QueuedRequest[],
  numbersOf: (check: QueuedCheck) => readonly (number | string)[],
): string {
  const numbers = asks.flatMap(({ checks }) => checks.flatMap(numbersOf))
  return `,"${name}":[${numbers.join()}]`
}

function receiptOf({ receipt, refunded = 0 }: QueuedCheck): readonly number[] {
  return [receipt?.at ?? 0, Number(receipt?.incarnation ?? 0), refunded]
}

const closingTerms: Omit<GrantCheck['terms'], 'closed'> = { id: 0, lifeMs: 0, divisor: 1 }

/** The terms as `lua/grants.lua` reads them. */
function termsOf({ terms, closed = terms?.closed }: QueuedCheck): readonly string[] {
  if (!closed) return ['[]']
  const { id, lifeMs, divisor, kept = [] } = terms ?? closingTerms
  const renewed = kept.flatMap((one) => [-one.id, one.left, one.freed])
  const ended = closed.flatMap((one) => [one.id, one.spent])
  return [`[${[id, lifeMs, divisor, ...renewed, ...ended].join()}]`]
}
