import type { Check, Policy } from '@sluice/core'
import type { QueuedRequest } from '../model/queued-request.ts'
import type { Script, Scripts } from './scripts.ts'
import {
  isUsualCharge,
  leaseSetting,
  type StoreSettings,
  type UsualModule,
  usualFields,
  usualOf,
} from './usual-states.ts'

/**
 * The script and arguments for `consume` requests with one list of policies. With a single policy,
 * also for charges and for requests that release or renew leases.
 */
export interface Plan {
  readonly policies: readonly Policy[]
  readonly script: Script
  /** The fields of the policies that the script reads. */
  readonly fields: readonly string[]
  /** The same for a single request of one policy, decided by the server's clock. */
  readonly loneFields: readonly string[]
  readonly width: number
  /** True if the keys of grants follow the keys. */
  readonly hasGrants: boolean
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

export class Plans {
  readonly #scripts: Scripts
  readonly #settings: StoreSettings
  readonly #roots: Branch[] = []

  constructor(scripts: Scripts, settings: StoreSettings) {
    this.#scripts = scripts
    this.#settings = settings
  }

  /** Returns `undefined` if the general script must decide the request. */
  planOf(ask: QueuedRequest): Plan | undefined {
    const { checks, op } = ask
    if (op !== 'consume' && leaseSetting(ask) === undefined && !isUsualCharge(ask)) return undefined
    let branches = this.#roots
    let branch: Branch | undefined
    for (let i = 0; i < checks.length; i += 1) {
      const check = checks[i]
      if (!check) return undefined
      branch = branchOf(branches, check)
      branches = branch.longer
    }
    if (!branch) return undefined
    if (branch.plan === null) branch.plan = this.#make(checks)
    return branch.plan
  }

  #make(checks: readonly Check[]): Plan | undefined {
    const modules: UsualModule[] = []
    for (const check of checks) {
      const usual = usualOf(check, this.#settings)
      if (!usual) return undefined
      modules.push(usual)
    }
    const script = this.#scripts.usual(modules)
    if (!script) return undefined
    const width = checks.length
    const policies = checks.map(({ policy }) => policy)
    const hasGrants = modules.some((module) => module.hasGrants)
    const fields = checks.flatMap(usualFields)
    const loneFields = fields[2] === '' ? fields.slice(0, 2) : fields
    return { policies, script, fields, loneFields, width, hasGrants }
  }
}

function branchOf(branches: Branch[], { policy, limit }: Check): Branch {
  for (let i = 0; i < branches.length; i += 1) {
    const known = branches[i]
    if (known && known.policy === policy && known.limit === limit) return known
  }
  if (branches.length >= maxBranches) branches.length = 0
  const branch = { policy, limit, plan: null, longer: [] }
  branches.push(branch)
  return branch
}
