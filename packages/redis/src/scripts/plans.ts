import type { Check, Policy } from '@sluice/core'
import type { Script, Scripts } from './scripts.ts'
import { type StoreSettings, type UsualName, usualFields, usualOf } from './usual-states.ts'

/** How requests that consume by one list of policies travel: one script decides them, and its arguments are the same for all of them. */
export interface Plan {
  readonly script: Script
  /** What the script reads of the policies; where there are several, of each behind the number of its module. */
  readonly fields: readonly string[]
  /** How many policies the list has. */
  readonly width: number
}

interface Branch {
  readonly policy: Policy
  readonly limit: number
  /** The plan of the list that ends here; `undefined` where the general script has to decide it. */
  plan: Plan | undefined
  readonly next: Branch[]
}

/** Limits may be computed for each request: more branches than that are forgotten. */
const mostBranches = 64

/** The plans of a store, by the lists of policies and limits that were asked for. */
export class Plans {
  readonly #scripts: Scripts
  readonly #settings: StoreSettings
  #roots: Branch[] = []

  constructor(scripts: Scripts, settings: StoreSettings) {
    this.#scripts = scripts
    this.#settings = settings
  }

  /** The plan for the checks of one request that consumes; `undefined` where the general script has to decide it. */
  planOf(checks: readonly Check[]): Plan | undefined {
    let branches = this.#roots
    let branch: Branch | undefined
    for (let i = 0; i < checks.length; i += 1) {
      const check = checks[i]
      if (!check) return undefined
      branch = this.#branchOf(branches, check, checks, i)
      branches = branch.next
    }
    return branch?.plan
  }

  #branchOf(branches: Branch[], check: Check, checks: readonly Check[], at: number): Branch {
    const { policy, limit } = check
    for (let i = 0; i < branches.length; i += 1) {
      const known = branches[i]
      if (known && known.policy === policy && known.limit === limit) return known
    }
    if (branches.length >= mostBranches) branches.length = 0
    const plan = this.#make(checks.slice(0, at + 1))
    const branch = { policy, limit, plan, next: [] }
    branches.push(branch)
    return branch
  }

  #make(checks: readonly Check[]): Plan | undefined {
    const modules: UsualName[] = []
    for (const check of checks) {
      const name = usualOf(check, this.#settings)
      if (!name) return undefined
      modules.push(name)
    }
    // Lists of the same modules share a script, in whatever order.
    const names = [...new Set(modules)].sort()
    const numbers = modules.map((name) => 1 + names.indexOf(name))
    const width = checks.length
    const fields = checks.flatMap((check, index) => {
      const own = usualFields(check, this.#settings)
      return width === 1 ? own : [numbers[index] ?? 0, ...own]
    })
    return { script: this.#scripts.usual(names, width), fields: fields.map(String), width }
  }
}
