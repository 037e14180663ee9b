import { endsWithin, SluiceError } from '@sluice/core'
import type { QueuedRequest } from '../model/queued-request.ts'
import type { CallEncoder, Plan, PlannedRequests } from './call-encoder.ts'

export interface CallQueueOptions {
  /** The most keys of one call, and the most bytes of them; a request with more travels alone. */
  readonly maxKeys: number
  readonly maxBytes: number
  /** The most calls that wait for an answer at once. */
  readonly maxInFlight: number
  /** Sends one call and settles its requests; never rejects. */
  send(call: Call): Promise<void>
  split(asks: readonly QueuedRequest[]): readonly Call[]
}

/** Time (ms) for which a call without an answer holds up others. Its answer counts even later. */
const longestUnderWayMs = 1_000

/**
 * Lets requests travel together, first come, first served. A call takes the waiting requests
 * divided by the calls that may still leave. So Node and Redis work at the same time, and batching
 * never adds latency.
 */
export class CallQueue {
  readonly #options: CallQueueOptions
  /**
   * Calls without an answer, in the order of their departure. No Map or Set: V8 keeps old tables of
   * those for long, and with them their garbage, which took half of the CPU of a check.
   */
  readonly #underWay: Call[] = []
  #waiting: QueuedRequest[] = []
  /** Number of asks at the start of `#waiting` that have left already. */
  #gone = 0
  #isScheduled = false
  #isClosed = false

  constructor(options: CallQueueOptions) {
    this.#options = options
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Takes a request, and sends it at the end of the current tick's work where a call may go. */
  submit(ask: QueuedRequest): void {
    if (this.#isClosed) {
      ask.fail(storeClosed())
      return
    }
    this.#waiting.push(ask)
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(this.#onTick)
  }

  /** Takes no more requests. The waiting ones fail if they are not answered within a second. */
  async close(): Promise<void> {
    this.#isClosed = true
    await withinSecond(this.#settled())
    const closed = new SluiceError('SLUICE_STORE_CLOSED', 'the store was closed before it answered')
    for (const ask of this.#waiting.splice(0).slice(this.#gone)) ask.fail(closed)
    this.#gone = 0
  }

  async #settled(): Promise<void> {
    this.#flush()
    while (this.#underWay.length > 0) await Promise.all(this.#underWay.map(({ done }) => done))
  }

  readonly #onTick = (): void => {
    this.#isScheduled = false
    this.#flush()
  }

  #flush(): void {
    this.#dropUnwanted()
    for (let free = this.#freeSlots(); free > 0 && this.#gone < this.#waiting.length; free -= 1) {
      const batch = this.#take(Math.ceil((this.#waiting.length - this.#gone) / free))
      for (const call of this.#options.split(batch)) this.#send(call)
    }
  }

  #send(call: Call): void {
    call.sentAt = performance.now()
    this.#underWay.push(call)
    call.done = this.#options.send(call).then(() => {
      this.#underWay.splice(this.#underWay.indexOf(call), 1)
      if (this.#gone < this.#waiting.length && !this.#isScheduled) this.#flush()
    })
  }

  /** Returns the number of calls that may go now. */
  #freeSlots(): number {
    const { maxInFlight } = this.#options
    const free = maxInFlight - this.#underWay.length
    if (free > 0) return free
    // Only when all are taken: a call that nobody waits for any more takes no place.
    const oldest = performance.now() - longestUnderWayMs
    let underWay = 0
    for (const { asks, sentAt } of this.#underWay) {
      if (sentAt > oldest && asks.some(({ isUnwanted }) => !isUnwanted)) underWay += 1
    }
    return Math.max(0, maxInFlight - underWay)
  }

  /** Drops requests that nobody waits for any more: the oldest, since they are given up first. */
  #dropUnwanted(): void {
    let error: SluiceError | undefined
    for (let ask = this.#waiting[this.#gone]; ask?.isUnwanted; ask = this.#waiting[this.#gone]) {
      error ??= notSentInTime()
      this.#gone += 1
      ask.fail(error)
    }
  }

  /** The next requests: so many at most, and no more than a full call. */
  #take(most: number): readonly QueuedRequest[] {
    const { maxKeys, maxBytes } = this.#options
    const waiting = this.#waiting
    const from = this.#gone
    let to = from
    let keys = 0
    let bytes = 0
    for (; to < waiting.length && to - from < most; to += 1) {
      const names = waiting[to]?.keys ?? []
      keys += names.length
      for (let i = 0; i < names.length; i += 1) bytes += names[i]?.length ?? 0
      if (to > from && (keys > maxKeys || bytes > maxBytes)) break
    }
    if (to === waiting.length) {
      this.#waiting = []
      this.#gone = 0
      return from === 0 ? waiting : waiting.slice(from)
    }
    const batch = waiting.slice(from, to)
    // Sent requests are forgotten now and then, and not at every call.
    if (to > 1_024 && to > waiting.length / 2) {
      this.#waiting = waiting.slice(to)
      this.#gone = 0
    } else this.#gone = to
    return batch
  }
}

export function notSentInTime(): SluiceError {
  return new SluiceError('SLUICE_STORE_DEADLINE', 'a check was not sent in time')
}

export function storeClosed(): SluiceError {
  return new SluiceError('SLUICE_STORE_CLOSED', 'the store was closed before this check')
}

/** Waits for something, but no longer than for a call that is lost. */
export async function withinSecond(work: Promise<unknown>): Promise<void> {
  await endsWithin(work, longestUnderWayMs)
}

/** Requests that travel together. */
export interface Call extends PlannedRequests {
  readonly asks: QueuedRequest[]
  /** True if one of the requests does more than consume. */
  settles: boolean
  /** Time at which it left, in ms of the monotonic clock. */
  sentAt: number
  /** Resolves when its requests have been answered. */
  done: Promise<void> | undefined
}

/**
 * Parts the requests of one moment into calls of one plan each. Nobody can tell the order of
 * requests that consume; all other operations keep their place among those of their policies.
 */
export function splitByPlan(
  asks: readonly QueuedRequest[],
  plans: Pick<CallEncoder, 'planOf'>,
): readonly Call[] {
  const calls: Call[] = []
  for (let i = 0; i < asks.length; i += 1) {
    const ask = asks[i]
    if (!ask) continue
    const settles = ask.op !== 'consume'
    const plan = plans.planOf(ask)
    const call = ask.control ? undefined : callFor(calls, plan, settles)
    if (!call) calls.push({ asks: [ask], plan, settles, sentAt: 0, done: undefined })
    else {
      call.asks.push(ask)
      call.settles ||= settles
    }
  }
  return calls
}

function callFor(
  calls: readonly Call[],
  plan: Plan | undefined,
  settles: boolean,
): Call | undefined {
  for (let i = calls.length - 1; i >= 0; i -= 1) {
    const call = calls[i]
    // A change by hand has a deadline, and so a call, of its own.
    if (!call || (call.plan === plan && !call.asks[0]?.control)) return call
    if ((settles || call.settles) && meets(call.plan, plan)) return undefined
  }
  return undefined
}

/** Tells whether two calls may ask for the same keys. */
function meets(one: Plan | undefined, other: Plan | undefined): boolean {
  if (!one || !other) return true
  return one.policies.some(({ id }) => other.policies.some((policy) => policy.id === id))
}
