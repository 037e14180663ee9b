import { backoffMs, jitterMs } from './backoff.ts'
import {
  type Answer,
  heldBack,
  isRetried,
  isShared,
  readAnswer,
  withDetails,
} from './calls/answer.ts'
import { type Call, type Fetch, hasIdempotencyKey, routeOf } from './calls/call.ts'
import { dropBody } from './calls/response.ts'
import type { Settings } from './options.ts'
import { clockMs } from './runtime/clock.ts'
import type { Gate } from './throttle/gate.ts'
import type { Waiter } from './throttle/queue.ts'
import { closeGates, type GateRegistry, refusingGates } from './throttle/registry.ts'
import { CallWaits, type Wait } from './waits.ts'

export interface SessionParts {
  readonly call: Call
  readonly settings: Settings
  readonly registry: GateRegistry
  readonly send: Fetch
}

/** Time (ms) for the document of a refusal to arrive. */
const maxDetailsMs = 1000

/** A wait of one call that concerns no other. */
const alone = { policies: [], at: [] } as const

interface Answered {
  readonly response: Response
  readonly answer: Answer
  /** Time at which the headers arrived. Waits that they tell begin then. */
  readonly answeredMs: number
}

/** The end of one request: an answer, or an error. */
type Result = Answered | { readonly response: undefined }

/** One call, from its first request to the answer that its caller gets. */
export class Session {
  readonly call: Call
  readonly registry: GateRegistry
  readonly route: string
  readonly #settings: Settings
  readonly #send: Fetch
  readonly #isRepeatable: boolean
  readonly #waits: CallWaits
  #tries = 0
  #isFirst = false
  #taken: readonly Gate[] = []
  /** The last answer. Its body is kept until another request is certain. */
  #response: Response | undefined
  /** Error of the last request, if it had no answer. */
  #failure: { readonly error: unknown } | undefined

  constructor({ call, settings, registry, send }: SessionParts) {
    this.#send = send
    this.call = call
    this.#settings = settings
    this.registry = registry
    this.route = routeOf(call)
    this.#waits = new CallWaits(call, settings, () => ({
      tries: this.#tries,
      response: this.#response,
    }))
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
      const result = await this.#request()
      if (result.response !== undefined && !this.#mayFollow(result)) return result.response
      toldUntilMs = this.#toldAtGatesMs(result)
      if (toldUntilMs !== undefined) continue
      const wait = this.#ownWait(result)
      if (wait.waitMs > this.#waits.patienceMs(0)) return this.#endUnsent(wait.waitMs)
      if (wait.waitMs > 0) await this.#waits.wait(wait)
    }
  }

  /** Ends the call with its last answer or error, since the wait is too long. */
  #endUnsent(tooLongMs: number): Response {
    this.#waits.giveUp('wait', tooLongMs)
    if (this.#failure !== undefined) throw this.#failure.error
    return this.#response ?? heldBack(tooLongMs)
  }

  /** Waits until all gates of the call let it through. Returns the wait (ms) if it is too long. */
  async #passGates(toldUntilMs: number | undefined): Promise<number | undefined> {
    for (let untilMs = toldUntilMs; ; untilMs = undefined) {
      this.call.signal?.throwIfAborted()
      const nowMs = clockMs()
      const gates = this.registry.gatesOf(this.route)
      const inTheWay = gates.filter(({ pacedMs }) => pacedMs > nowMs)
      const waiter: Waiter = {
        notBeforeMs: untilMs ?? 0,
        gates: () => this.registry.gatesOf(this.route),
        patienceMs: (atMs) => this.#waits.patienceMs(atMs - nowMs),
        waking: new Set(),
        passed: undefined,
        tooLongMs: undefined,
      }
      const wait: Wait = {
        reason: untilMs === undefined ? 'held' : 'told',
        waitMs: this.registry.queue.join(waiter),
        policies: inTheWay.flatMap(({ name }) => name ?? []),
        at: [waiter.waking],
        isOpenEnded: true,
        isOver: () => waiter.passed !== undefined || waiter.tooLongMs !== undefined,
      }
      try {
        if (wait.waitMs > 0) await this.#waits.wait(wait)
      } finally {
        this.registry.queue.leave(waiter)
        this.#taken = waiter.passed ?? []
      }
      // A refusal at the same instant may have closed them again.
      if (waiter.tooLongMs !== undefined || this.#areGatesOpen()) return waiter.tooLongMs
      this.#giveBack({ isAnswered: false })
    }
  }

  #areGatesOpen(): boolean {
    const nowMs = clockMs()
    return this.registry.gatesOf(this.route).every((gate) => gate.isOpen(nowMs))
  }

  /** Waits for the answer to the first call on the route, since the limits are unknown before. */
  async #awaitFirst(): Promise<void> {
    const waiting = this.registry.waitingForFirst(this.route)
    this.#isFirst = waiting === undefined
    if (waiting === undefined) return
    const waitMs = this.#waits.patienceMs(0)
    const ended = await this.#waits.wait({ reason: 'held', waitMs, policies: [], at: [waiting] })
    // The first call may have failed without an answer.
    if (ended === 'woken') await this.#awaitFirst()
  }

  #giveBack({ isAnswered }: { isAnswered: boolean }): void {
    if (this.#taken.length === 0) return
    for (const gate of this.#taken) gate.settle({ isAnswered })
    this.#taken = []
    if (!isAnswered) this.registry.queue.move()
  }

  /** Settles the call at its gates, and passes on what its answer tells about limits. */
  #settle(answer?: Answer, tookMs = 0): void {
    if (answer !== undefined && answer.toldMs === undefined) {
      for (const gate of this.#taken) gate.relax()
    }
    this.#giveBack({ isAnswered: answer !== undefined })
    if (answer !== undefined) this.registry.learn(this.route, answer, { nowMs: clockMs(), tookMs })
    if (this.#isFirst) this.registry.endFirst(this.route)
    this.#isFirst = false
  }

  async #request(): Promise<Result> {
    this.#dropResponse()
    this.#failure = undefined
    this.#tries += 1
    const sentMs = clockMs()
    const mayFollow = this.#isRepeatable && this.#tries <= this.#settings.retries
    // Browsers refuse to call their `fetch` as a method.
    const send = this.#send
    const request = this.call.argumentsFor({ mayFollow })
    let response: Response
    try {
      response = await send(...request)
    } catch (error) {
      this.#settle()
      if (this.call.signal?.aborted || !mayFollow) throw error
      this.#failure = { error }
      return { response: undefined }
    }
    this.#response = response
    const answeredMs = clockMs()
    const answer = readAnswer(response, this.call)
    this.#settle(answer, answeredMs - sentMs)
    const answered = { response, answer, answeredMs }
    if (answer.toldMs === undefined || !isShared(response.status)) return answered
    return { ...answered, answer: await this.#closeGates(answered, sentMs) }
  }

  /** Closes gates by the headers or the problem document. No call passes before it is read. */
  async #closeGates({ answer: told, response, answeredMs: nowMs }: Answered, sentMs: number) {
    const untilMs = nowMs + maxDetailsMs
    const held = told.hasDetails ? refusingGates(told, this) : []
    // Longer than the reading, so that no call passes at its end.
    const releases = held.map((gate) => gate.hold(untilMs + maxDetailsMs))
    const { signal } = this.call
    const answer = told.hasDetails ? await withDetails(told, response, { untilMs, signal }) : told
    const { toldMs = 0 } = answer
    const drawMs = () => jitterMs(toldMs, this.#tries, this.#settings)
    // A request that costs too much is no reason for others to wait.
    if (!answer.isTooCostly) closeGates(answer, { sentMs, nowMs, jitterMs: drawMs }, this)
    for (const release of releases) release()
    // Calls that only the hold stopped may go on.
    if (held.some((gate) => gate.isOpen(clockMs()))) this.registry.queue.move()
    return answer
  }

  /** Time until which the call waits at its gates, if its refusal concerns other calls too. */
  #toldAtGatesMs(result: Result): number | undefined {
    if (result.response === undefined || !isShared(result.response.status)) return undefined
    const { toldMs } = result.answer
    return toldMs === undefined ? undefined : result.answeredMs + toldMs
  }

  /** The wait of the call itself after a failed request. */
  #ownWait(result: Result): Wait {
    const toldMs = result.response === undefined ? undefined : result.answer.toldMs
    if (toldMs === undefined) {
      return { reason: 'backoff', waitMs: backoffMs(this.#tries, this.#settings), ...alone }
    }
    const waitMs = toldMs + jitterMs(toldMs, this.#tries, this.#settings)
    return { reason: 'told', waitMs, ...alone }
  }

  /** True if the answer suggests another request, and one may be made. */
  #mayFollow({ response, answer }: Answered): boolean {
    if (!isRetried(response.status, answer.toldMs, this.#settings.statuses)) return false
    if (answer.isTooCostly) this.#waits.giveUp('cost')
    else if (!this.#isRepeatable) this.#waits.giveUp('unsafe')
    else if (this.#tries > this.#settings.retries) this.#waits.giveUp('tries')
    else return true
    return false
  }

  /** Frees the connection of an answer that nobody reads. */
  #dropResponse(): void {
    if (this.#response !== undefined) dropBody(this.#response)
    this.#response = undefined
  }
}
