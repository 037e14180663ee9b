import type { Check } from '../check.ts'
import type { StoreOp } from '../store.ts'

interface DeferredOp {
  readonly op: StoreOp
  readonly checks: readonly Check[]
}

/** Beyond that the oldest are forgotten: units that are not given back expire, and so do leases. */
const mostDeferred = 10_000

/** What a store is to be told when it is back: refunds and releases of what it had granted before. */
export class DeferredOps {
  readonly #deferred: DeferredOp[] = []

  add(op: StoreOp, checks: readonly Check[]): void {
    this.#deferred.push({ op, checks })
    if (this.#deferred.length > mostDeferred) this.#deferred.shift()
  }

  get size(): number {
    return this.#deferred.length
  }

  /** The oldest. */
  takeSome(count: number): readonly DeferredOp[] {
    return this.#deferred.splice(0, count)
  }
}
