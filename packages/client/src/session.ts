import { type Answer, readAnswer, withDetails } from './answer.ts'
import { backoffMs, jitterMs } from './backoff.ts'
import type { Call } from './call.ts'
import type { Settings } from './client-options.ts'
import { clockMs } from './clock.ts'
import { closeGates, refusingGates } from './close-gates.ts'
import type { Fetch } from './create-fetch.ts'
import { dropBody } from './drop-body.ts'
import type { GiveUpEvent, WaitEvent } from './events.ts'
import type { Gate } from './gate.ts'
import type { GateKeeper } from './gate-keeper.ts'
import { heldBack } from './held-back.ts'
import { pause, type Waiting } from './pause.ts'
import { isRetried, isShared } from './statuses.ts'

export interface SessionParts {
  readonly call: Call
  readonly settings: Settings
  readonly keeper: GateKeeper
  readonly send: Fetch
}

interface Wait {
  readonly reason: WaitEvent['reason']
  readonly waitMs: number
  /** Names of the policies that are waited for. */
  readonly policies: readonly string[]
  /** Where the call may be woken. */
  readonly at: readonly Waiting[]
}

/** How long the document of a refusal may take to come. */
const maxDetailsMs = 1000

/** A wait of one call that concerns no other. */
const alone = { policies: [], at: [] } as const

interface Answered {
  readonly response: Response
  readonly answer: Answer
}

/** How one request ended. */
type Result = Answered | { readonly response: undefined; readonly error: unknown }

/** One call, from its first request to the answer that its caller gets. */
export class Session {
  readonly call: Call
  readonly keeper: GateKeeper
  readonly #settings: Settings
  readonly #send: Fetch
  readonly #isRepeatable: boolean
  #waitLeftMs: number
  #tries = 0
  #isScout = false
  #taken: readonly Gate[] = []
  /** The last answer. Its body is kept until another request is certain. */
  #response: Response | undefined

  constructor({ call, settings, keeper, send }: SessionParts) {
    this.#send = send
    this.call = call
    this.#settings = settings
    this.keeper = keeper
    this.#waitLeftMs = settings.maxTotalWaitMs
    const isSafe = settings.methods.has(call.method) || call.headers.has('Idempotency-Key')
    this.#isRepeatable = isSafe && call.hasRepeatableBody
  }

  async run(): Promise<Response> {
    try {
      return await this.#untilFinal()
    } finally {
      this.#settle()
    }
  }

  async #untilFinal(): Promise<Response> {
    if (this.#settings.pace) await this.#followScout()
    for (let reason: Wait['reason'] = 'held'; ; ) {
      const tooLongMs = await this.#passGates(reason)
      if (tooLongMs !== undefined) {
        this.#giveUp('wait', tooLongMs)
        return this.#response ?? heldBack(tooLongMs)
      }
      const result = await this.#request()
      if (result.response !== undefined && !this.#mayFollow(result)) return result.response
      const wait = this.#ownWait(result)
      reason = wait.reason
      if (this.#mayWait(wait.waitMs)) {
        if (wait.waitMs > 0) await this.#wait(wait)
        continue
      }
      this.#giveUp('wait', wait.waitMs)
      if (result.response === undefined) throw result.error
      return result.response
    }
  }

  /** Waits until all gates of the call are open; answers how long that would take where that is too long. */
  async #passGates(firstReason: Wait['reason']): Promise<number | undefined> {
    for (let reason = firstReason; ; reason = 'held') {
      const nowMs = clockMs()
      const gates = this.keeper.gatesOf(this.call)
      const waitMs = Math.max(nowMs, ...gates.map((gate) => gate.slotMs(nowMs))) - nowMs
      if (!this.#mayWait(waitMs)) return waitMs
      const inTheWay = gates.filter((gate) => gate.slotMs(nowMs) > nowMs)
      this.#take(gates, nowMs)
      if (waitMs === 0) return undefined
      const ended = await this.#wait({
        reason,
        waitMs,
        policies: inTheWay.flatMap(({ name }) => name ?? []),
        at: gates.map(({ waiting }) => waiting),
      })
      // What was learned meanwhile may have put another gate in the way.
      if (ended === 'over' && this.#areGatesOpen()) return undefined
    }
  }

  #areGatesOpen(): boolean {
    const nowMs = clockMs()
    return this.keeper.gatesOf(this.call).every((gate) => gate.isOpen(nowMs))
  }

  /** Waits for the answer to the call that is first on its route, since nothing is known before. */
  async #followScout(): Promise<void> {
    const waiting = this.keeper.waitingForScout(this.call)
    this.#isScout = waiting === undefined
    if (waiting === undefined) return
    const waitMs = Math.min(this.#settings.maxWaitMs, this.#waitLeftMs)
    const ended = await this.#wait({ reason: 'held', waitMs, policies: [], at: [waiting] })
    // The scout may have failed, and brought no answer.
    if (ended === 'woken') await this.#followScout()
  }

  #take(gates: readonly Gate[], nowMs: number): void {
    for (const gate of this.#taken) gate.settle()
    for (const gate of gates) gate.take(nowMs)
    this.#taken = gates
  }

  /** Hands in what the call has of its gates, and what it has learned for the next ones. */
  #settle(answer?: Answer): void {
    if (answer !== undefined && answer.toldMs === undefined) {
      for (const gate of this.#taken) gate.relax()
    }
    this.#take([], 0)
    if (answer !== undefined) this.keeper.learn(this.call, answer, clockMs())
    if (this.#isScout) this.keeper.endScouting(this.call)
    this.#isScout = false
  }

  async #request(): Promise<Result> {
    this.#dropResponse()
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
      return { response: undefined, error }
    }
    this.#response = response
    const answer = readAnswer(response, this.call)
    this.#settle(answer)
    if (answer.toldMs === undefined || !isShared(response.status)) return { response, answer }
    return { response, answer: await this.#closeGates(answer, { response, sentMs }) }
  }

  /** Closes gates as the headers say, or as the document says that comes with them; nobody passes before it is read. */
  async #closeGates(
    told: Answer,
    { response, sentMs }: { response: Response; sentMs: number },
  ): Promise<Answer> {
    const nowMs = clockMs()
    const untilMs = nowMs + maxDetailsMs
    const release = told.hasDetails
      ? this.keeper.holds.hold(refusingGates(told, this), { nowMs, untilMs })
      : undefined
    const { signal } = this.call
    const answer = release ? await withDetails(told, response, { untilMs, signal }) : told
    const { toldMs = 0 } = answer
    const drawMs = () => jitterMs(toldMs, this.#tries, this.#settings)
    closeGates(answer, { sentMs, nowMs, jitterMs: drawMs }, this)
    release?.()
    return answer
  }

  /** What the call waits for by itself after a request that failed; the gates stand for what is told to everybody. */
  #ownWait(result: Result): Wait {
    const toldMs = result.response === undefined ? undefined : result.answer.toldMs
    if (toldMs === undefined) {
      return { reason: 'backoff', waitMs: backoffMs(this.#tries, this.#settings), ...alone }
    }
    const isAtGates = result.response !== undefined && isShared(result.response.status)
    const waitMs = isAtGates ? 0 : toldMs + jitterMs(toldMs, this.#tries, this.#settings)
    return { reason: 'told', waitMs, ...alone }
  }

  /** Whether the answer suggests another request, and one may be made. */
  #mayFollow({ response, answer }: Answered): boolean {
    if (!isRetried(response.status, answer.toldMs, this.#settings.statuses)) return false
    if (!this.#isRepeatable) this.#giveUp('unsafe')
    else if (this.#tries > this.#settings.retries) this.#giveUp('tries')
    else return true
    return false
  }

  #mayWait(waitMs: number): boolean {
    return waitMs <= this.#settings.maxWaitMs && waitMs <= this.#waitLeftMs
  }

  async #wait({ at, ...event }: Wait): Promise<'over' | 'woken'> {
    const nowMs = clockMs()
    this.#settings.onWait?.({ ...this.#soFar(), ...event })
    try {
      return await pause(nowMs + event.waitMs, this.call.signal, at)
    } catch (error) {
      this.#dropResponse()
      throw error
    } finally {
      this.#waitLeftMs -= clockMs() - nowMs
    }
  }

  /** Frees the connection. What goes wrong with a body that nobody wants does not matter. */
  #dropResponse(): void {
    if (this.#response !== undefined) dropBody(this.#response)
    this.#response = undefined
  }

  #giveUp(reason: GiveUpEvent['reason'], waitMs?: number): void {
    this.#settings.onGiveUp?.({ ...this.#soFar(), reason, waitMs })
  }

  #soFar() {
    const { method, url } = this.call
    return { method, url: url.href, tries: this.#tries, response: this.#response }
  }
}
