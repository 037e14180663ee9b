import { ControlCall, errorText, isSluiceError, SluiceError } from '@sluice/core'

/** Maximum calls in flight: a frozen Redis may execute all of them when it continues. */
const maxUnderWay = 100

/** Interval (ms) between probes while there are no replies. */
const probeEveryMs = 250

/** Time (ms) after which a probe without an answer counts as lost. */
const probeLostMs = 10_000

/** A call that waits for its start. */
interface WaitingCall {
  start(): Promise<void>
  refuse(cause?: unknown): void
}

/**
 * Makes calls with a deadline to a server that may be slow or frozen. A frozen server executes what
 * it has received when it continues, so only a few calls are in flight. The others wait here, and
 * are dropped when they are late. Once a call is overdue, all others are refused at once, except
 * for occasional probes, until one is answered.
 */
export class BoundedCalls {
  readonly #deadlineMs: number
  readonly #waiting = new Set<WaitingCall>()
  #underWay = 0
  #isStuck = false
  #probe: WaitingCall | undefined
  #probedAt = 0

  /** @param deadlineMs maximum duration of a call (ms) */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }

  /** @throws SluiceError */
  async ask<T>(work: (control: ControlCall) => Promise<T>): Promise<T> {
    const isProbe = this.#isStuck
    if (isProbe && !this.#mayProbe()) throw brokerFailure('the broker does not answer')
    return new Promise((resolve, reject) => {
      const control = new BrokerCall(this.#deadlineMs)
      let hasStarted = false
      const call: WaitingCall = {
        start: async () => {
          hasStarted = true
          this.#underWay += 1
          try {
            resolve(await work(control))
            // It was answered, even if it was late.
            this.#isStuck = false
          } catch (error) {
            reject(isSluiceError(error) ? error : control.failure(error))
          }
          clearTimeout(timer)
          this.#ended(call)
        },
        refuse(cause) {
          clearTimeout(timer)
          reject(control.failure(cause))
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(call)
        call.refuse()
        if (hasStarted) this.#getStuck()
      }, this.#deadlineMs)
      if (isProbe) {
        this.#probe = call
        this.#probedAt = performance.now()
      }
      if (isProbe || this.#underWay < maxUnderWay) void call.start()
      else this.#waiting.add(call)
    })
  }

  #ended(call: WaitingCall): void {
    this.#underWay -= 1
    if (this.#probe === call) this.#probe = undefined
    const [next] = this.#waiting
    if (!next || this.#underWay >= maxUnderWay) return
    this.#waiting.delete(next)
    void next.start()
  }

  #getStuck(): void {
    this.#isStuck = true
    for (const call of this.#waiting) call.refuse(brokerFailure('the broker does not answer'))
    this.#waiting.clear()
  }

  #mayProbe(): boolean {
    const sinceMs = performance.now() - this.#probedAt
    return sinceMs >= (this.#probe ? probeLostMs : probeEveryMs)
  }
}

class BrokerCall extends ControlCall {
  override failure(cause: unknown = brokerFailure('the broker did not answer in time')): unknown {
    if (isSluiceError(cause)) return super.failure(cause)
    return super.failure(brokerFailure(`the broker failed: ${errorText(cause)}`, cause))
  }
}

function brokerFailure(message: string, cause?: unknown): SluiceError {
  return new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
}
