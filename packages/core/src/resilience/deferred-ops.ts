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
  #deferred: DeferredOp[] = []

  add(op: StoreOp, checks: readonly Check[]): void {
    this.#deferred.push({ op, checks })
    if (this.#deferred.length > mostDeferred) this.#deferred.shift()
  }

  takeAll(): readonly DeferredOp[] {
    const deferred = this.#deferred
    this.#deferred = []
    return deferred
  }
}
