import type { Check, Policy } from '@sluice/core'
import type { QueuedCheck, QueuedRequest } from '../model/queued-request.ts'
import { isShortLog, luaSetting, mayHaveGrants } from '../scripts/usual-states.ts'

/**
 * Asks that follow each other, of one operation on one list of policies: their keys travel without
 * further words.
 */
interface Group {
  readonly op: QueuedRequest['op']
  /** Numbers of the policies, from 1. */
  readonly policies: readonly number[]
  readonly asks: QueuedRequest[]
}

interface OwnFields {
  /** The grants of the only key, where they may live on another node. */
  readonly apart: string | undefined
  /** The number of a call that gives units back, and that the client may send again. */
  readonly number: number | undefined
}

/**
 * Writes the asks of a call as `lua/decide.lua` reads them: policies once, and groups of requests.
 * @param now about the time of Redis
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

/** Returns the number of a policy and limit among those that are known, from 1. */
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

/** The last form of each policy, since it is mostly the same for every call. */
const encodedPolicies = new WeakMap<
  Policy,
  { readonly limit: number; readonly setting: unknown; readonly json: string }
>()

/** Writes a group as JSON. Values that are the same for every ask, as most are, are left out. */
function encodeGroup({ op, policies, asks }: Group): string {
  const allCostOne = asks.every(({ checks }) => checks.every(({ cost }) => cost === 1))
  const hasReceipts = op === 'refund' || op === 'release' || op === 'renew'
  // Terms of grants stand under the name of receipts: no group has both.
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

/** The terms as `lua/grants.lua` reads them. */
function termsOf({ terms }: QueuedCheck): readonly string[] {
  if (!terms) return ['[]']
  const kept = terms.kept?.flatMap(({ id, left, freed }) => [-id, left, freed]) ?? []
  const closed = terms.closed.flatMap(({ id, spent }) => [id, spent])
  return [`[${[terms.id, terms.lifeMs, terms.divisor, ...kept, ...closed].join()}]`]
}
