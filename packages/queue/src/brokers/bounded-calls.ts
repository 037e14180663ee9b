import { ControlCall, errorText, isSluiceError, SluiceError } from '@sluice/core'

/** Most calls under way: a frozen Redis may execute all of them when it continues. */
const maxUnderWay = 100

/** Interval (ms) at which a probe is let through while nothing is answered. */
const probeEveryMs = 250

/** Time (ms) after which a probe without an answer counts as lost. */
const probeLostMs = 10_000

/** A call that waits for its start. */
interface Started {
  start(): Promise<boolean>
  refuse(cause?: unknown): void
}

/**
 * Makes calls with a deadline to a server that may be slow or frozen. A frozen server executes what
 * it has received when it continues, so few calls are under way at once. The others wait here, and
 * are dropped when they are late. After one call is overdue, all others are refused at once, except
 * for occasional probes, until one is answered.
 */
export class BoundedCalls {
  readonly #deadlineMs: number
  readonly #waiting = new Set<Started>()
  #underWay = 0
  #isStuck = false
  #probe: Started | undefined
  #probedAt = 0

  /** @param deadlineMs longest time (ms) that a call may take */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }

  /** @throws SluiceError */
  async ask<T>(work: (ask: ControlCall) => Promise<T>): Promise<T> {
    const isProbe = this.#isStuck
    if (isProbe && !this.#mayProbe()) throw brokerFailure('the broker does not answer')
    const asked: TimedCall<T> = new TimedCall(work, this.#deadlineMs, (hasStarted) => {
      this.#waiting.delete(asked)
      if (hasStarted) this.#getStuck()
    })
    if (isProbe) {
      this.#probe = asked
      this.#probedAt = performance.now()
    }
    if (isProbe || this.#underWay < maxUnderWay) void this.#start(asked)
    else this.#waiting.add(asked)
    return asked.answer
  }

  async #start(asked: Started): Promise<void> {
    this.#underWay += 1
    if (await asked.start()) this.#isStuck = false
    this.#underWay -= 1
    if (this.#probe === asked) this.#probe = undefined
    const [next] = this.#waiting
    if (!next || this.#underWay >= maxUnderWay) return
    this.#waiting.delete(next)
    void this.#start(next)
  }

  #getStuck(): void {
    this.#isStuck = true
    for (const asked of this.#waiting) asked.refuse(brokerFailure('the broker does not answer'))
    this.#waiting.clear()
  }

  #mayProbe(): boolean {
    const sinceMs = performance.now() - this.#probedAt
    return sinceMs >= (this.#probe ? probeLostMs : probeEveryMs)
  }
}

/** One call and its timer. */
class TimedCall<T> extends ControlCall implements Started {
  readonly answer: Promise<T>
  readonly #work: (ask: ControlCall) => Promise<T>
  readonly #timer: NodeJS.Timeout
  #resolve: (answer: T) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #hasStarted = false

  constructor(
    work: (ask: ControlCall) => Promise<T>,
    deadlineMs: number,
    onLate: (hasStarted: boolean) => void,
  ) {
    super(deadlineMs)
    this.#work = work
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#timer = setTimeout(() => {
      this.refuse()
      onLate(this.#hasStarted)
    }, deadlineMs)
  }

  /** Resolves to true if the call was answered, even late. Never rejects. */
  async start(): Promise<boolean> {
    this.#hasStarted = true
    try {
      this.#resolve(await this.#work(this))
      return true
    } catch (error) {
      this.#reject(isSluiceError(error) ? error : this.failure(error))
      return false
    } finally {
      clearTimeout(this.#timer)
    }
  }

  refuse(cause?: unknown): void {
    clearTimeout(this.#timer)
    this.#reject(this.failure(cause))
  }

  override failure(cause: unknown = brokerFailure('the broker did not answer in time')): unknown {
    if (isSluiceError(cause)) return super.failure(cause)
    return super.failure(brokerFailure(`the broker failed: ${errorText(cause)}`, cause))
  }
}

function brokerFailure(message: string, cause?: unknown): SluiceError {
  return new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
}
