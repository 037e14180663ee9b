import type { Check, Policy } from '@sluice/core'
import { grantsKey } from '../keys/key-encoder.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import type { Script, Scripts } from '../scripts/scripts.ts'
import {
  isUsualCharge,
  leaseSetting,
  mayHaveGrants,
  type StoreSettings,
  type UsualModule,
  usualFields,
  usualOf,
} from '../scripts/usual-states.ts'
import { generalCall } from './general-call.ts'

/**
 * The script and arguments for `consume` requests with one list of policies. With a single policy,
 * also for charges and for requests that release or renew leases.
 */
export interface Plan {
  readonly policies: readonly Policy[]
  readonly script: Script
  /** The fields of the policies that the script reads. */
  readonly fields: readonly string[]
  /** True if the keys of grants follow the keys. */
  readonly hasGrants: boolean
}

/** Requests that share a call, and their plan. Without a plan, the general script decides them. */
export interface PlannedRequests {
  readonly asks: readonly QueuedRequest[]
  readonly plan: Plan | undefined
}

/** Terms of one call, besides its requests. */
export interface CallTerms {
  /** Grants of the only key, read beforehand because its slot is migrating. */
  readonly apart?: string
  /** Deadline (ms, server's clock): after it, the script changes nothing. */
  readonly untilMs?: string
}

export interface EncodedCall {
  readonly script: Script
  /** The SHA-1 of the script, the number of keys, the keys, and all else. */
  readonly args: string[]
  /** The id that the reply repeats; '' if it repeats none, as for a single request. */
  readonly echo: string
}

interface EncoderOptions extends StoreSettings {
  readonly scripts: Scripts
  /** Returns the approximate time of Redis (ms since the epoch). */
  nowMs(): number
  /** Key prefix by which Redis recognises a retried refund; `undefined` if none is retried. */
  readonly senderPrefix: string | undefined
}

/** A list of policies and limits, and the longer lists that begin with it. */
interface Branch {
  readonly policy: Policy
  readonly limit: number
  /** `undefined` if the general script must decide; `null` until first use. */
  plan: Plan | undefined | null
  readonly longer: Branch[]
}

/** Limits may be computed per request: a list with more branches than this is cleared. */
const maxBranches = 64

const u32 = 2 ** 32

/** Encodes the calls of one store. */
export class CallEncoder {
  readonly #options: EncoderOptions
  readonly #roots: Branch[] = []
  #number = 0
  /** Chosen at the first call: some runtimes allow no random numbers before a request. */
  #incarnation: number | undefined
  #senderKey: string | undefined

  constructor(options: EncoderOptions) {
    this.#options = options
  }

  /** Returns `undefined` if the general script must decide the request. */
  planOf(ask: QueuedRequest): Plan | undefined {
    const { checks, op } = ask
    if (op !== 'consume' && leaseSetting(ask) === undefined && !isUsualCharge(ask)) return undefined
    let branches = this.#roots
    let branch: Branch | undefined
    for (const check of checks) {
      branch = branchOf(branches, check)
      branches = branch.longer
    }
    if (!branch) return undefined
    if (branch.plan === null) branch.plan = this.#makePlan(checks)
    return branch.plan
  }

  /**
   * Returns the id of the next call. The script echoes it: a reply to another call is an error. It
   * also has the incarnation (u32) from which a script counts those of the call, unless the clock
   * of the server does.
   */
  nextId(): string {
    this.#number += 1
    if (this.#options.isServerClock) return `c${this.#number}`
    this.#incarnation ??= Math.floor(Math.random() * u32)
    return `c${this.#number};${this.#incarnation}`
  }

  encode(call: PlannedRequests, callId: string, { apart, untilMs }: CallTerms): EncodedCall {
    const { asks, plan } = call
    const { isServerClock, nowMs, scripts } = this.#options
    const clock = isServerClock ? '' : String(nowMs())
    const script = plan?.script ?? (asks.some(mayHaveGrants) ? scripts.granting : scripts.general)
    const args = [script.sha1, '']
    for (const { keys } of asks) for (const key of keys) args.push(key)
    const keyCount = args.length - 2
    // A key takes four at most.
    if (this.#incarnation !== undefined)
      this.#incarnation = (this.#incarnation + 4 * keyCount) % u32
    const hasGrants = plan ? plan.hasGrants : script !== scripts.general
    if (hasGrants && apart === undefined)
      for (let i = 0; i < keyCount; i += 1) args.push(grantsKey(args[2 + i] ?? ''))
    const senderKey = plan ? undefined : this.#senderKeyFor(asks)
    if (senderKey !== undefined) args.push(senderKey)
    args[1] = String(args.length - 2)
    const isLone = plan?.policies.length === 1 && asks.length === 1
    if (!plan) {
      const own = { apart, number: senderKey === undefined ? undefined : this.#number }
      args.push(callId, clock, generalCall(asks, nowMs(), own))
    } else {
      const allCostOne = asks.every(costsOne)
      const repeats = keyCount > 1 && new Set(args.slice(2, 2 + keyCount)).size < keyCount
      args.push(...plan.fields)
      // With the server's clock, a single request of cost 1 needs only the policy.
      if (!isLone || !allCostOne || clock !== '') args.push(callId, clock, repeats ? '1' : '0')
      if (!allCostOne) for (const ask of asks) pushCosts(args, ask)
    }
    if (untilMs !== undefined) args.push(untilMs)
    return { script, args, echo: isLone ? '' : callId }
  }

  #senderKeyFor(asks: readonly QueuedRequest[]): string | undefined {
    const { senderPrefix } = this.#options
    if (senderPrefix === undefined || !asks.some(({ op }) => op === 'refund')) return undefined
    this.#senderKey ??= `${senderPrefix}${crypto.randomUUID()}`
    return this.#senderKey
  }

  #makePlan(checks: readonly Check[]): Plan | undefined {
    const { scripts } = this.#options
    const modules: UsualModule[] = []
    for (const check of checks) {
      const usual = usualOf(check, this.#options)
      if (!usual) return undefined
      modules.push(usual)
    }
    const script = scripts.usual(modules)
    const policies = checks.map(({ policy }) => policy)
    // Otherwise a key may occur twice in a request.
    const areDistinct = new Set(policies.map(({ id }) => id)).size === checks.length
    if (!script || !areDistinct) return undefined
    const hasGrants = modules.some((module) => module.hasGrants)
    const fields = checks.flatMap(usualFields)
    return { policies, script, fields, hasGrants }
  }
}

function branchOf(branches: Branch[], { policy, limit }: Check): Branch {
  const known = branches.find((one) => one.policy === policy && one.limit === limit)
  if (known) return known
  if (branches.length >= maxBranches) branches.length = 0
  const branch = { policy, limit, plan: null, longer: [] }
  branches.push(branch)
  return branch
}

/** Appends the cost of each key, negative for a charge; or the lease to release or renew. */
function pushCosts(args: string[], ask: QueuedRequest): void {
  const lease = leaseSetting(ask)
  for (const { cost } of ask.checks) {
    args.push(lease ?? String(ask.op === 'charge' ? -cost : cost))
  }
}

function costsOne({ op, checks }: QueuedRequest): boolean {
  if (op !== 'consume') return false
  for (let i = 0; i < checks.length; i += 1) if (checks[i]?.cost !== 1) return false
  return true
}
