import { errorText, SluiceError } from '../options/errors.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs, withDeadline } from './timers.ts'

const lateText = 'the store did not answer in time'
/** Share of the remaining time by which two clocks may drift apart. */
const driftShare = 0.01

/**
 * A change that a store makes by the caller's deadline, or never, if the store can guarantee that.
 * The error of an unanswered change says whether it was sent.
 */
export class ControlCall {
  readonly #dueAt: number
  #isPromised = false
  #isSent = false
  #isOver = false

  constructor(timeoutMs: number) {
    this.#dueAt = monotonicMs() + timeoutMs
  }

  /** True once the change has failed: its remaining steps are skipped. */
  get isUnwanted(): boolean {
    return this.#isOver
  }

  /** The call itself, which also serves as its cancellation flag. */
  get control(): this {
    return this
  }

  /** Records that the store makes the change by the deadline, or never. */
  promise(): void {
    this.#isPromised = true
  }

  /** Records that the change, or a part of it, was made or sent. */
  sent(): void {
    this.#isSent = true
  }

  /**
   * Sends the change, or a part of it, to a server that can guarantee it.
   * @param askMs returns the server's time, in ms
   * @param send makes the server apply the change before `untilMs` of its clock, or never
   */
  async send<T>(askMs: () => Promise<number>, send: (untilMs: number) => Promise<T>): Promise<T> {
    this.promise()
    const serverMs = await askMs().catch((cause: unknown) => Promise.reject(this.failure(cause)))
    const restMs = this.#dueAt - monotonicMs()
    if (this.#isOver || restMs <= 0) throw this.failure()
    this.sent()
    return send(Math.floor(serverMs + restMs * (1 - driftShare)))
  }

  /** Ends an unanswered change. Returns its error: the cause, if nothing is guaranteed. */
  failure(cause: unknown = new SluiceError('SLUICE_STORE_DEADLINE', lateText)): unknown {
    this.#isOver = true
    if (!this.#isPromised) return cause
    const [code, what] = this.#isSent
      ? (['SLUICE_UNANSWERED', 'made by its deadline, or never'] as const)
      : (['SLUICE_NOT_DONE', 'not made, and never will be'] as const)
    return new SluiceError(code, `the change is ${what}: ${errorText(cause)}`, { cause })
  }
}

/** Makes a change, and waits for it until its deadline. */
export async function controlled<T>(
  timeoutMs: number,
  change: (control: ControlCall) => MaybePromise<T>,
): Promise<T> {
  const control = new ControlCall(timeoutMs)
  return withDeadline(Promise.resolve(change(control)), timeoutMs, () => control.failure())
}
