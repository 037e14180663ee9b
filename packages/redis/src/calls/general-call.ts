import type { Ask, Check, Policy, StoreOp } from '@sluice/core'
import type { AlgorithmSettings } from '@sluice/core/backend'
import { capacityOf, isShortLog, mayHaveGrants } from '../scripts/usual-states.ts'

/**
 * Asks that follow each other, of one operation on one list of policies: their keys travel without
 * further words.
 */
interface Group {
  readonly op: StoreOp
  /** Numbers of the policies, from 1. */
  readonly policies: readonly number[]
  readonly asks: Ask[]
}

/** The asks of a call as `lua/decide.lua` reads them: policies once, and groups of requests. */
export class GeneralCall {
  readonly #groups: Group[] = []
  readonly #apart: string | undefined
  /** A check of each policy and limit, by number. */
  readonly #policies: Check[] = []

  /** @param apart the grants of the only key, where they may live on another node */
  constructor(asks: readonly Ask[], apart?: string) {
    this.#apart = apart
    for (const ask of asks) this.#add(ask)
  }

  get json(): string {
    const policies = this.#policies.map(encodePolicy)
    const groups = this.#groups.map(encodeGroup)
    const apart = this.#apart === undefined ? '' : `,"apart":${JSON.stringify(this.#apart)}`
    return `{"policies":[${policies.join()}],"groups":[${groups.join()}]${apart}}`
  }

  #add(ask: Ask): void {
    const policies = ask.checks.map((check) => this.#numberOf(check))
    const last = this.#groups.at(-1)
    if (last && last.op === ask.op && isSame(last.policies, policies)) last.asks.push(ask)
    else this.#groups.push({ op: ask.op, policies, asks: [ask] })
  }

  #numberOf(check: Check): number {
    const known = this.#policies.findIndex(
      ({ policy, limit }) => policy === check.policy && limit === check.limit,
    )
    return known === -1 ? this.#policies.push(check) : known + 1
  }
}

function encodePolicy(check: Check): string {
  const { policy, limit } = check
  const known = encodedPolicies.get(policy)
  if (known?.limit === limit) return known.json
  const json = JSON.stringify({
    // Lua knows held-log as an algorithm too.
    algorithm: policy.counting,
    limit,
    window: policy.windowMs,
    capacity: capacityOf(check),
    is_short: isShortLog(check),
    count_denied: policy.countDenied,
    ...Object.assign({}, ...settingReaders.map((fieldsOf) => fieldsOf(policy))),
  })
  encodedPolicies.set(policy, { limit, json })
  return json
}

/** Returns the fields that Lua reads of a setting, by the names that `lua/decide.lua` lists. */
type SettingReader = (policy: Policy) => {
  readonly [field: string]: number | boolean | undefined
}

/** Readers of all settings of algorithms: for a new one the compiler asks for its own. */
const luaFields: { readonly [setting in keyof AlgorithmSettings]: SettingReader } = {
  resolutionMs: ({ resolutionMs }) => ({ resolution: resolutionMs }),
  clockAligned: ({ clockAligned }) => ({ aligned: clockAligned }),
  penalty: ({ penalty }) => ({
    block_for: penalty?.forMs,
    block_factor: penalty?.factor,
    block_most: penalty?.maxMs,
  }),
  // The capacity contains these three.
  burst: () => ({}),
  queue: () => ({}),
  maxDelayMs: () => ({}),
  // The outcome alone has it.
  retryMs: () => ({}),
}

const settingReaders = Object.values(luaFields)

interface EncodedPolicy {
  readonly limit: number
  readonly json: string
}

/** The last form of each policy, since it is mostly the same for every call. */
const encodedPolicies = new WeakMap<Policy, EncodedPolicy>()

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((number, index) => number === b[index])
}

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
  asks: readonly Ask[],
  numbersOf: (check: Check) => readonly (number | string)[],
): string {
  const numbers = asks.flatMap(({ checks }) => checks.flatMap(numbersOf))
  return `,"${name}":[${numbers.join()}]`
}

function receiptOf({ receipt, refunded = 0 }: Check): readonly number[] {
  return [receipt?.at ?? 0, Number(receipt?.incarnation ?? 0), refunded]
}

/** The terms as `lua/grants.lua` reads them. */
function termsOf({ terms }: Check): readonly string[] {
  if (!terms) return ['[]']
  const closed = terms.closed.flatMap(({ id, spent }) => [id, spent])
  return [`[${[terms.id, terms.lifeMs, terms.divisor, ...closed].join()}]`]
}
