import { openSync, writeSync } from 'node:fs'
import { createLimiter, type Reservation } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { answerParent } from '../support/child.ts'

export interface FleetSettings {
  readonly port: number
  readonly limit: number
  readonly windowMs: number
  /** Clients that begin a stream now and then. */
  readonly clients: number
  /** Units per ms that each client wants on average. */
  readonly rate: number
  readonly step: number
  /** Gets a line of history for each turn in which units were produced. */
  readonly file: string
}

/** A line of history, with the units that the streams of the process hold after it, and the lengths of those that ended for lack of units. */
export interface ProducedLine {
  readonly held: number
  readonly refused: readonly number[]
}

export type FleetProtocol = {
  readonly start: { readonly input: undefined; readonly output: undefined }
  readonly settle: { readonly input: undefined; readonly output: undefined }
}

const settings: FleetSettings = JSON.parse(process.argv[2] ?? '{}')
const { port, limit, windowMs, rate, step } = settings
const file = openSync(settings.file, 'a')
const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
client.on('error', () => undefined)

const limiter = createLimiter({
  policies: [{ name: 'tokens', limit, window: windowMs, reserve: true }],
  store: redisStore(client),
  // The bar allows no unit beyond the limit.
  failureMode: 'closed',
  // The machine runs other tests.
  deadlineMs: 2_000,
  observers: { onStoreError: () => undefined },
})

/** The same clock in all processes of the machine. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

/** Units of a stream, 300 on average. Few streams have most of the units. */
const anyLength = () => Math.min(20_000, 100 / (1 - Math.random()) ** (1 / 1.5))
const speed = 0.1
const meanPauseMs = 300 / rate - 300 / speed
const anyPauseMs = () => -Math.log(1 - Math.random()) * meanPauseMs

class Client {
  budget: Reservation | undefined
  #left = anyLength()
  #due = 0
  #lastMs = nowMs()
  #waitUntilMs = nowMs() + anyPauseMs()
  #isOpening = false

  /** Produces what is due by now. Returns the units. */
  turn(atMs: number): number {
    const { budget } = this
    if (!budget) {
      this.#lastMs = atMs
      if (!this.#isOpening && atMs >= this.#waitUntilMs) void this.#open()
      return 0
    }
    this.#due += speed * (atMs - this.#lastMs)
    this.#lastMs = atMs
    const due = Math.min(50, Math.floor(this.#due))
    if (due === 0) return 0
    const units = Math.min(due, Math.max(1, budget.left))
    this.#due -= units
    const isSpent = budget.spend(units)
    if (isSpent) this.#left -= units
    if (this.#left > 0 && isSpent) return units
    this.budget = undefined
    this.#pause(isSpent)
    void budget.settle().catch(() => undefined)
    return isSpent ? units : 0
  }

  /** Streams that are refused or cut are demand that is not met. */
  #pause(hasEnded: boolean): void {
    if (!hasEnded) refused.push(Math.ceil(this.#left))
    this.#left = anyLength()
    this.#waitUntilMs = nowMs() + anyPauseMs()
  }

  async #open(): Promise<void> {
    this.#isOpening = true
    try {
      const budget = await limiter.reserve('tenant', { units: step, step })
      if (budget.allowed) this.budget = budget
      else this.#pause(false)
    } finally {
      this.#isOpening = false
    }
  }
}

let refused: number[] = []
const clients = Array.from({ length: settings.clients }, () => new Client())

function turn(): void {
  const start = nowMs()
  let cost = 0
  for (const each of clients) cost += each.turn(start)
  if (cost + refused.length === 0) return
  let held = 0
  for (const { budget } of clients) held += budget?.left ?? 0
  const names = { process: String(process.pid), key: 'tenant', policy: 'tokens' }
  const line = { start, end: nowMs(), ...names, decision: 'allowed', cost, held, refused }
  refused = []
  writeSync(file, `${JSON.stringify(line)}\n`)
}

let timer: NodeJS.Timeout | undefined

answerParent<FleetProtocol>({
  start: () => {
    timer = setInterval(turn, 20)
  },
  settle: async () => {
    clearInterval(timer)
    await Promise.all(clients.map(({ budget }) => budget?.settle()))
  },
})
