import type { Fallback } from '../ledger/fallback.ts'
import type { Check } from '../model/check.ts'
import type { Outcome, StoreOp } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { isPromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { ControlCall } from '../waiting/control-call.ts'
import type { Asks } from './asks.ts'
import { inTime } from './deadlines.ts'
import { applyChange } from './denials-of-store.ts'
import type { Caller } from './pending-ask.ts'

/** Time (ms) for a reset or a block, which no request waits for: it asks the store twice. */
const controlMs = 1_000

/** Changes what a store has counted: by refunds, leases, resets and blocks. */
export class Changes {
  readonly #asks: Asks
  readonly #fallback: Fallback

  constructor(asks: Asks, fallback: Fallback) {
    this.#asks = asks
    this.#fallback = fallback
  }

  /**
   * Changes at the store what decisions took. Returns whether anything was there, all of it for
   * leases to be renewed; false when the store failed, and when the change waits for it.
   */
  async change(
    op: 'refund' | 'release' | 'renew',
    checks: readonly Check[],
    caller: Caller,
  ): Promise<boolean> {
    const { outage, reconciliation } = this.#asks
    if (!outage.isClosed) {
      if (op !== 'renew') reconciliation.defer(op, checks)
      return false
    }
    try {
      const changed = (await this.#inTime(op, checks, caller)).map(({ allowed }) => allowed)
      return op === 'renew' ? !changed.includes(false) : changed.includes(true)
    } catch (error) {
      caller.onFailure(op, error)
      return false
    }
  }

  /** @throws or rejects when the store failed or is away: nothing was changed here either */
  async overwrite(
    op: 'reset' | 'block',
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[]> {
    if (!this.#asks.outage.isClosed) {
      throw new SluiceError(
        'SLUICE_NOT_DONE',
        `the store is away, so the ${op} was not done; try again when it is back (storeHealth tells)`,
      )
    }
    const outcomes = await this.#inTime(op, checks, caller)
    this.#fallback.overwrite(op, await this.#fallback.keyed(checks, caller.store))
    return outcomes
  }

  /**
   * @throws or rejects when the store failed or was late. It may still give back and renew units,
   * but changes nothing else any more, if it keeps the deadlines of control calls
   */
  async #inTime(
    op: StoreOp,
    checks: readonly Check[],
    caller: Caller,
  ): Promise<readonly Outcome[]> {
    const { outage, deadlines } = this.#asks
    const isControl = op === 'reset' || op === 'block'
    const deadlineMs = isControl ? Math.max(caller.deadlineMs, controlMs) : caller.deadlineMs
    const control = isControl ? new ControlCall(deadlineMs) : undefined
    let missed: unknown
    try {
      const answer = applyChange(caller.store, op, checks, control)
      if (!isPromise(answer)) return answer
      const outcomes = await inTime(answer, deadlines.of(deadlineMs), (error) => {
        missed = error
      })
      outage.succeed(caller, monotonicMs())
      return outcomes
    } catch (error) {
      outage.fail(caller, error)
      throw missed && control ? control.failure(missed) : error
    }
  }
}
