import {
  type Change,
  type Check,
  type DecidingOp,
  memoryStore,
  type Outcome,
  type Store,
} from '@sluice/core'

interface Message {
  /** Has the shared store decide. Returns what answers the sender. */
  decide(): () => void
  reject(error: Error): void
}

/** The faults of a connection. */
export interface Disturbance {
  readonly requestDelayMs: number
  readonly replyDelayMs: number
}

/** The way of one process to a store that many share. Messages keep their order, and clocks are faked. */
export class NetworkStore implements Store {
  readonly denials = { ttlMs: 1_000 }
  delays: Disturbance = { requestDelayMs: 1, replyDelayMs: 1 }
  isDown = false
  readonly #shared: Store
  /** Messages on their way, and messages whose answer is. */
  #under: Message[] = []
  #arrivesAt = 0
  #answersAt = 0

  /** Times at which the shared store has reset a key. */
  readonly #resets: number[]

  /** @param shared the store that decides */
  constructor(shared: Store = memoryStore(), resets: number[] = []) {
    this.#shared = shared
    this.#resets = resets
  }

  apply(op: DecidingOp, checks: readonly Check[]): Promise<readonly Outcome[]> {
    return this.#send(() => this.#shared.apply(op, checks))
  }

  change(change: Change): Promise<readonly boolean[]> {
    return this.#send(() => {
      if (change.op === 'reset') this.#resets.push(Date.now())
      return this.#shared.change(change)
    })
  }

  #send<T>(ask: () => T): Promise<Awaited<T>> {
    if (this.isDown) return Promise.reject(new Error('down'))
    return new Promise((resolve, reject) => {
      const decide = () => {
        const answer = ask() as Awaited<T>
        return () => resolve(answer)
      }
      const message: Message = { decide, reject }
      this.#under.push(message)
      this.#arrivesAt = Math.max(this.#arrivesAt, Date.now() + this.delays.requestDelayMs)
      setTimeout(() => this.#arrive(message), this.#arrivesAt - Date.now())
    })
  }

  /** Cuts the connection: messages on their way never arrive, and answers are lost. */
  cut(): void {
    for (const { reject } of this.#under.splice(0)) reject(new Error('cut'))
  }

  #arrive(message: Message): void {
    if (!this.#under.includes(message)) return
    const answer = message.decide()
    this.#answersAt = Math.max(this.#answersAt, Date.now() + this.delays.replyDelayMs)
    setTimeout(() => {
      if (!this.#under.includes(message)) return
      this.#under = this.#under.filter((each) => each !== message)
      answer()
    }, this.#answersAt - Date.now())
  }
}
