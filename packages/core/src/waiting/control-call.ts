import { errorText, SluiceError } from '../options/errors.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs, withDeadline } from './timers.ts'

/** Share of the remaining time by which two clocks may drift apart meanwhile. */
const driftShare = 0.01

/**
 * A change that a store makes by the deadline of its caller, or never, if the store can promise
 * that. The error of a change that was not answered tells whether the change was sent.
 */
export class ControlCall {
  readonly #dueAt: number
  #isPromised = false
  #isSent = false
  #isOver = false

  constructor(timeoutMs: number) {
    this.#dueAt = monotonicMs() + timeoutMs
  }

  /** True once the change has failed: its remaining steps are left out. */
  get isUnwanted(): boolean {
    return this.#isOver
  }

  /** The call itself, which is a cancellation too. */
  get control(): this {
    return this
  }

  /** Notes that the store makes the change by the deadline, or never. */
  promise(): void {
    this.#isPromised = true
  }

  /** Notes that the change, or a part of it, is made or on its way. */
  sent(): void {
    this.#isSent = true
  }

  /**
   * Sends the change, or a part of it, to a server that can promise it.
   * @param askMs asks for the time of the server, in ms
   * @param send has the server make the change before `untilMs` of its clock, or never
   */
  async send<T>(askMs: () => Promise<number>, send: (untilMs: number) => Promise<T>): Promise<T> {
    this.promise()
    const serverMs = await askMs().catch((cause: unknown) => Promise.reject(this.failure(cause)))
    const restMs = this.#dueAt - monotonicMs()
    if (this.#isOver || restMs <= 0) throw this.failure()
    this.sent()
    return send(Math.floor(serverMs + restMs * (1 - driftShare)))
  }

  /** Ends a change that was not answered. Returns its error: the cause if nothing is promised. */
  failure(cause: unknown = late()): unknown {
    this.#isOver = true
    if (!this.#isPromised) return cause
    const [code, what] = this.#isSent
      ? (['SLUICE_UNANSWERED', 'made by its deadline, or never'] as const)
      : (['SLUICE_NOT_DONE', 'not made, and never will be'] as const)
    return new SluiceError(code, `the change is ${what}: ${errorText(cause)}`, { cause })
  }
}

function late(): SluiceError {
  return new SluiceError('SLUICE_STORE_DEADLINE', 'the store did not answer in time')
}

/** Makes a change, and waits for it until its deadline. */
export async function controlled<T>(
  timeoutMs: number,
  change: (control: ControlCall) => MaybePromise<T>,
): Promise<T> {
  const control = new ControlCall(timeoutMs)
  return withDeadline(Promise.resolve(change(control)), timeoutMs, () => control.failure())
}
