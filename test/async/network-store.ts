import { type Check, memoryStore, type Outcome, type Store } from '@sluice/core'

type Op = Parameters<Store['apply']>[0]

interface Message {
  readonly op: Op
  readonly checks: readonly Check[]
  resolve(outcomes: readonly Outcome[]): void
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

  apply(op: Op, checks: readonly Check[]): Promise<readonly Outcome[]> {
    if (this.isDown) return Promise.reject(new Error('down'))
    return new Promise((resolve, reject) => {
      const message: Message = { op, checks, resolve, reject }
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
    if (message.op === 'reset') this.#resets.push(Date.now())
    const outcomes = this.#shared.apply(message.op, message.checks) as readonly Outcome[]
    this.#answersAt = Math.max(this.#answersAt, Date.now() + this.delays.replyDelayMs)
    setTimeout(() => {
      if (!this.#under.includes(message)) return
      this.#under = this.#under.filter((each) => each !== message)
      message.resolve(outcomes)
    }, this.#answersAt - Date.now())
  }
}
