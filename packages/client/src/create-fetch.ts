import { backoffMs, jitterMs } from './backoff.ts'
import { type Answer, heldBack, isShared, readAnswer, withDetails } from './calls/answer.ts'
import { type Call, type Fetch, hasIdempotencyKey, readCall, routeOf } from './calls/call.ts'
import { dropBody } from './calls/response.ts'
import {
  type ClientOptions,
  type GiveUpEvent,
  readClientOptions,
  type Settings,
  tell,
  type WaitEvent,
} from './options.ts'
import { clockMs, never, pause, type Waiting } from './runtime/clock.ts'
import type { CallEnd, Gate } from './throttle/gate.ts'
import type { Waiter } from './throttle/queue.ts'
import { type GateRegistry, registryOf } from './throttle/registry.ts'

/**
 * Creates a `fetch` that obeys the waits that servers send, and retries requests that are safe to
 * retry. All calls of a process share the waits and limits. It resolves to the last response,
 * including refusals, and rejects only if `fetch` would.
 *
 * @example
 * const fetch = createFetch()
 * const response = await fetch('https://api.example.com/items')
 */
export function createFetch(options: ClientOptions = {}): Fetch {
  const settings = readClientOptions(options)
  return async function patientFetch(input, init) {
    return new Session(readCall(input, init), settings).run()
  }
}

/** Time (ms) for the document of a refusal to arrive. */
const maxDetailsMs = 1000

/** Statuses that are retried only if the answer has a wait. */
const retriedWhenTold: ReadonlySet<number> = new Set([403, 409, 413])

/** A wait of the call: its reason, its duration, and the events that may end it. */
interface Wait extends Pick<WaitEvent, 'reason' | 'waitMs' | 'policies'> {
  /** True if the wait ends only when it is woken. */
  readonly isOpenEnded?: boolean
  /** True if the wait is already over. */
  isOver?(): boolean
  /** Sets of waiting calls that may wake this one. */
  readonly at: readonly Waiting[]
}

interface Answered {
  readonly response: Response
  readonly answer: Answer
  /** Time at which the headers arrived. Their waits start then. */
  readonly answeredMs: number
}

/** One call, from its first request to the answer that its caller receives. */
class Session {
  readonly #call: Call
  readonly #registry: GateRegistry
  readonly #route: string
  readonly #settings: Settings
  readonly #send: Fetch
  readonly #isRepeatable: boolean
  /** Maximum remaining total wait (ms) of the call. */
  #leftMs: number
  #tries = 0
  #isFirst = false
  #taken: readonly Gate[] = []
  /** The last answer. Its body is kept until another request is certain. */
  #response: Response | undefined
  /** Error of the last request, if it had no answer. */
  #failure: { readonly error: unknown } | undefined

  constructor(call: Call, settings: Settings) {
    this.#call = call
    this.#settings = settings
    this.#send = settings.fetch ?? globalThis.fetch
    this.#registry = registryOf(call, this.#send, settings)
    this.#route = routeOf(call)
    this.#leftMs = settings.maxTotalWaitMs
    const isSafe = settings.methods.has(call.method) || hasIdempotencyKey(call)
    this.#isRepeatable = isSafe && call.hasRepeatableBody
  }

  async run(): Promise<Response> {
    try {
      return await this.#untilFinal()
    } catch (error) {
      this.#dropResponse()
      throw error
    } finally {
      this.#settle()
    }
  }

  async #untilFinal(): Promise<Response> {
    if (this.#settings.pace) await this.#awaitFirst()
    for (let toldUntilMs: number | undefined; ; ) {
      const tooLongMs = await this.#passGates(toldUntilMs)
      if (tooLongMs !== undefined) return this.#endUnsent(tooLongMs)
      const answered = await this.#request()
      if (answered !== undefined && !this.#mayFollow(answered)) return answered.response
      const toldMs = answered?.answer.toldMs
      // A refusal that concerns other calls too is waited for at the gates.
      const isAtGates = answered !== undefined && isShared(answered.response.status)
      toldUntilMs = isAtGates && toldMs !== undefined ? answered.answeredMs + toldMs : undefined
      if (toldUntilMs !== undefined) continue
      const waitMs =
        toldMs === undefined
          ? backoffMs(this.#tries, this.#settings)
          : toldMs + jitterMs(toldMs, this.#tries, this.#settings)
      if (waitMs > this.#patienceMs()) return this.#endUnsent(waitMs)
      const reason = toldMs === undefined ? 'backoff' : 'server'
      if (waitMs > 0) await this.#wait({ reason, waitMs, policies: [], at: [] })
    }
  }

  /** Ends the call with its last answer or error, because the wait is too long. */
  #endUnsent(tooLongMs: number): Response {
    this.#giveUp('wait', tooLongMs)
    if (this.#failure !== undefined) throw this.#failure.error
    return this.#response ?? heldBack(tooLongMs)
  }

  /** Waits until all gates of the call let it through. Returns the wait (ms) if it is too long. */
  async #passGates(toldUntilMs: number | undefined): Promise<number | undefined> {
    for (let untilMs = toldUntilMs; ; untilMs = undefined) {
      this.#call.signal?.throwIfAborted()
      const nowMs = clockMs()
      const gates = (): readonly Gate[] => this.#registry.gatesOf(this.#route)
      const inTheWay = gates().filter(({ pacedMs }) => pacedMs > nowMs)
      const waiter: Waiter = {
        notBeforeMs: untilMs ?? 0,
        gates,
        patienceMs: (atMs) => this.#patienceMs(atMs - nowMs),
        waking: new Set(),
        passed: undefined,
        tooLongMs: undefined,
      }
      const wait: Wait = {
        reason: untilMs === undefined ? 'held' : 'server',
        waitMs: this.#registry.queue.join(waiter),
        policies: inTheWay.flatMap(({ name }) => name ?? []),
        at: [waiter.waking],
        isOpenEnded: true,
        isOver: () => waiter.passed !== undefined || waiter.tooLongMs !== undefined,
      }
      try {
        if (wait.waitMs > 0) await this.#wait(wait)
      } finally {
        this.#registry.queue.leave(waiter)
        this.#taken = waiter.passed ?? []
      }
      // A refusal at the same instant may have closed them again.
      const laterMs = clockMs()
      const isOpen = gates().every((gate) => gate.isOpen(laterMs))
      if (waiter.tooLongMs !== undefined || isOpen) return waiter.tooLongMs
      this.#giveBack('failed')
    }
  }

  /** Waits for the answer to the first call on the route, since limits are unknown before that. */
  async #awaitFirst(): Promise<void> {
    const waiting = this.#registry.waitingForFirst(this.#route)
    this.#isFirst = waiting === undefined
    if (waiting === undefined) return
    const waitMs = this.#patienceMs()
    const ended = await this.#wait({ reason: 'held', waitMs, policies: [], at: [waiting] })
    // The first call may have failed without an answer.
    if (ended === 'woken') await this.#awaitFirst()
  }

  #giveBack(end: CallEnd): void {
    if (this.#taken.length === 0) return
    for (const gate of this.#taken) gate.settle(end)
    this.#taken = []
    if (end === 'failed') this.#registry.queue.move()
  }

  /** Settles the call at its gates, and updates them with the limits in its answer. */
  #settle(answer?: Answer, tookMs = 0): void {
    if (answer === undefined) this.#giveBack('failed')
    else {
      this.#giveBack(answer.toldMs === undefined ? 'served' : 'refused')
      this.#registry.learn(this.#route, answer, { nowMs: clockMs(), tookMs })
    }
    if (this.#isFirst) this.#registry.endFirst(this.#route)
    this.#isFirst = false
  }

  async #request(): Promise<Answered | undefined> {
    this.#dropResponse()
    this.#failure = undefined
    this.#tries += 1
    const sentMs = clockMs()
    const mayFollow = this.#isRepeatable && this.#tries <= this.#settings.retries
    // Browsers do not allow `fetch` to be called as a method.
    const send = this.#send
    const request = this.#call.argumentsFor({ mayFollow })
    let response: Response
    try {
      response = await send(...request)
    } catch (error) {
      this.#settle()
      if (this.#call.signal?.aborted || !mayFollow) throw error
      this.#failure = { error }
      return undefined
    }
    this.#response = response
    const answeredMs = clockMs()
    const answer = readAnswer(response, this.#call)
    this.#settle(answer, answeredMs - sentMs)
    const answered = { response, answer, answeredMs }
    if (answer.toldMs === undefined || !isShared(response.status)) return answered
    return { ...answered, answer: await this.#closeGates(answered, sentMs) }
  }

  /** Closes gates by the headers or the problem document. No call passes before it is read. */
  async #closeGates({ answer: bare, response, answeredMs: nowMs }: Answered, sentMs: number) {
    const untilMs = nowMs + maxDetailsMs
    const held = bare.hasDetails ? this.#registry.refusingGates(bare, this.#route) : []
    // Longer than the reading, so that no call passes at its end.
    const releases = held.map((gate) => gate.hold(untilMs + maxDetailsMs))
    const { signal } = this.#call
    const answer = bare.hasDetails ? await withDetails(bare, response, { untilMs, signal }) : bare
    const { toldMs = 0 } = answer
    const drawMs = () => jitterMs(toldMs, this.#tries, this.#settings)
    // If a request costs too much, others need not wait.
    if (!answer.isTooCostly)
      this.#registry.close(answer, { sentMs, nowMs, jitterMs: drawMs }, this.#route)
    for (const release of releases) release()
    // Calls that only the hold stopped may continue.
    if (held.some((gate) => gate.isOpen(clockMs()))) this.#registry.queue.move()
    return answer
  }

  /** True if the answer suggests another request, and one may be made. */
  #mayFollow({ response, answer }: Answered): boolean {
    const isRetriedIfTold = answer.toldMs !== undefined && retriedWhenTold.has(response.status)
    if (!isRetriedIfTold && !this.#settings.statuses.has(response.status)) return false
    if (answer.isTooCostly) this.#giveUp('cost')
    else if (!this.#isRepeatable) this.#giveUp('unsafe')
    else if (this.#tries > this.#settings.retries) this.#giveUp('tries')
    else return true
    return false
  }

  /** Returns the maximum remaining wait (ms) of the call, given the wait so far. */
  #patienceMs(waitedMs = 0): number {
    return Math.min(this.#settings.maxWaitMs, Math.max(0, this.#leftMs - waitedMs))
  }

  async #wait({ at, isOpenEnded, isOver, ...wait }: Wait): Promise<'over' | 'woken'> {
    const nowMs = clockMs()
    const event = { ...this.#state(), ...wait }
    tell(this.#settings.observers, (observer) => observer.onWait?.(event))
    try {
      // An observer may have taken time, or made its own calls.
      if (isOver?.()) return 'woken'
      const untilMs = isOpenEnded ? never : nowMs + wait.waitMs
      return await pause(untilMs, this.#call.signal, at)
    } finally {
      const waitedMs = clockMs() - nowMs
      this.#leftMs = Math.max(0, this.#leftMs - waitedMs)
      tell(this.#settings.observers, (observer) => observer.onWaited?.({ ...event, waitedMs }))
    }
  }

  #giveUp(reason: GiveUpEvent['reason'], waitMs?: number): void {
    const event = { ...this.#state(), reason, waitMs }
    tell(this.#settings.observers, (observer) => observer.onGiveUp?.(event))
  }

  #state() {
    const { method, url } = this.#call
    return { method, url: url.href, tries: this.#tries, response: this.#response }
  }

  #dropResponse(): void {
    if (this.#response !== undefined) dropBody(this.#response)
    this.#response = undefined
  }
}
