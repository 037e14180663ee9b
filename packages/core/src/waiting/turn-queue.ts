import { errorText } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { type StopSignal, startTimer } from './timers.ts'

/** The source of units: a limiter that several processes share. */
interface UnitSource<Grant> {
  /** Requests units. Returns the grant, or the wait before the next request. */
  ask(cost: number): Promise<{ readonly grant: Grant } | { readonly retryMs: number }>
  /** Returns units that no waiter needs. */
  giveBack(grant: Grant): Promise<unknown>
}

interface TurnOptions<Grant> {
  /** @default 1 */
  readonly cost?: number
  /** Higher goes first; for equal priority, the waiter that came first. @default 0 */
  readonly priority?: number
  /** Ends the wait. */
  readonly signal?: StopSignal | undefined
  /** Maximum wait (ms). @default no limit */
  readonly maxWaitMs?: number
  /** Called before the next waiter's request. If it rejects, so does the wait. */
  readonly begin?: (grant: Grant) => Promise<void>
}

/** The end of a wait: the units, or the reason for leaving without them. */
type Turn<Grant> = { readonly grant: Grant } | { readonly left: 'timeout' | 'aborted' | 'closed' }

interface Waiter<Grant> {
  readonly cost: number
  readonly priority: number
  readonly end: (turn: Turn<Grant>) => Promise<void>
}

/** Delay (ms) before the next request after an unexpected error. */
const errorRetryMs = 1_000

/** Gives units to waiters one after another. Only the first waiter makes requests. */
export class TurnQueue<Grant> {
  readonly #source: UnitSource<Grant>
  readonly #waiters: Waiter<Grant>[] = []
  #wake: () => void = () => undefined
  #isAsking = false

  constructor(source: UnitSource<Grant>) {
    this.#source = source
  }

  get waiting(): number {
    return this.#waiters.length
  }

  wait({
    cost = 1,
    priority = 0,
    signal,
    maxWaitMs,
    begin,
  }: TurnOptions<Grant> = {}): Promise<Turn<Grant>> {
    if (signal?.aborted) return Promise.resolve({ left: 'aborted' })
    return new Promise((resolve, reject) => {
      const end = async (turn: Turn<Grant>): Promise<void> => {
        stopTimer?.()
        signal?.removeEventListener('abort', abort)
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        try {
          if ('grant' in turn) await begin?.(turn.grant)
          resolve(turn)
        } catch (error) {
          reject(error)
        }
      }
      const waiter = { cost, priority, end }
      const abort = () => void end({ left: 'aborted' })
      const late = () => void end({ left: 'timeout' })
      const stopTimer = maxWaitMs === undefined ? undefined : startTimer(late, maxWaitMs)
      signal?.addEventListener('abort', abort)
      const before = this.#waiters.findLastIndex((other) => other.priority >= priority)
      this.#waiters.splice(before + 1, 0, waiter)
      if (!this.#isAsking) void this.#askOn()
    })
  }

  close(): void {
    for (const { end } of [...this.#waiters]) void end({ left: 'closed' })
    this.#wake()
  }

  async #askOn(): Promise<void> {
    this.#isAsking = true
    for (let first = this.#waiters[0]; first; first = this.#waiters[0]) {
      const retryMs = await this.#askFor(first)
      if (retryMs > 0 && this.#waiters.length > 0) await this.#sleep(retryMs)
    }
    this.#isAsking = false
  }

  /** Returns the wait before the next request. */
  async #askFor({ cost }: Waiter<Grant>): Promise<number> {
    try {
      const answer = await this.#source.ask(cost)
      if ('retryMs' in answer) return answer.retryMs
      // The waiter may have left, or another may have come before it. The waiter that is first now,
      // and costs as much, gets the units.
      const first = this.#waiters[0]
      if (first?.cost === cost) await first.end(answer)
      else await this.#source.giveBack(answer.grant)
      return 0
    } catch (error) {
      warnOnce(`units could not be requested; next try in a second: ${errorText(error)}`)
      return errorRetryMs
    }
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = startTimer(resolve, delayMs)
      this.#wake = () => {
        stop()
        resolve()
      }
    })
  }
}
