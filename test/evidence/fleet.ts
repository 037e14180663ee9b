import type {
  Change,
  Check,
  CheckLimiter,
  DecidingOp,
  Decision,
  GrantCheck,
  Granted,
  LimiterOptions,
  MemoryStore,
  Outcome,
  PolicyFields,
  Receipt,
  Store,
} from '@sluice/core'
import {
  checkHistory,
  type Finding,
  type FindingKind,
  type HistoryLaw,
  type HistoryLine,
} from '@sluice/testing/histories'
import fc from 'fast-check'
import { type Drawn, weighted } from '../support/weighted.ts'
import { type VirtualProcess, VirtualTime } from './virtual-time.ts'

/** The product that is tried: its sources, or a copy with a planted fault. */
export type Core = Pick<
  typeof import('@sluice/core'),
  'createCheckLimiter' | 'memoryStore' | 'regionalStore'
>

const defaultLimit = 20
const windowMs = 2_000
const processes = 3
const maxUncounted = 6

export interface FleetKind {
  readonly policy?: Partial<PolicyFields>
  /** @default 20 */
  readonly limit?: number
  readonly failureMode?: 'closed' | 'fallback'
  readonly regions?: true
  readonly hasOneLimit?: true
  readonly extraUnits?: number
  /** What the checker must not find, beside windows that are too full. */
  readonly promises?: readonly FindingKind[]
}

const numbers = ['wrongful-refusal', 'broken-wait', 'contradiction'] as const

export const fleetKinds: Readonly<Record<string, FleetKind>> = {
  store: { promises: numbers },
  'fixed windows': {
    policy: { algorithm: 'fixed-window' },
    extraUnits: defaultLimit,
    promises: numbers,
  },
  'token buckets': {
    policy: { algorithm: 'token-bucket' },
    extraUnits: defaultLimit,
    // Units of a higher limit are refilled at the pace of the lower one, so they outlast a window.
    hasOneLimit: true,
    promises: numbers,
  },
  async: { policy: { async: { maxUncounted } }, limit: 60, extraUnits: processes * maxUncounted },
  regions: { regions: true },
  // As docs/reliability.md says: one limit more as an outage begins, and one as it ends.
  outage: { failureMode: 'fallback', extraUnits: 2 * defaultLimit },
}

const actions = [
  ...['cut', 'down', 'up', 'slow', 'stuck', 'quick', 'twice', 'reset', 'peek', 'charge'],
  ...['pause', 'crash', 'skew', 'failover'],
] as const

const step = fc.record({
  process: fc.nat({ max: processes - 1 }),
  key: fc.constantFrom('plain', 'refunded', 'reset', 'changing'),
  requests: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 120 })),
  cost: weighted([4, fc.constant(1)], [1, fc.nat({ max: 7 })]),
  action: fc.option(fc.constantFrom(...actions), { freq: 3 }),
  waitMs: fc.oneof(fc.nat({ max: 8 }), fc.nat({ max: 8 }), fc.nat({ max: 400 })),
})

export const plans = fc.record({
  seed: fc.nat(),
  steps: fc.array(step, { minLength: 20, maxLength: 120 }),
})

/** A store that writes come to in one order, and whose replica is behind. */
class Server {
  lostUnits = 0
  /** Resets, and units that were taken twice. */
  readonly lines: HistoryLine[] = []
  readonly #time: VirtualTime
  readonly #core: Core
  #memory: MemoryStore
  #writes: Write[] = []
  /** What stands in the present memory for a state that receipts of an older one name. */
  #successors = new Map<unknown, unknown>()

  constructor(time: VirtualTime, core: Core) {
    this.#time = time
    this.#core = core
    this.#memory = core.memoryStore()
  }

  decide<T>(decide: Decide<T>, checks: readonly Check[]): T {
    const answer = this.#time.as(undefined, () => decide(this.#memory))
    this.#writes.push({ atMs: this.#time.nowMs, checks, write: decide, answer })
    return answer
  }

  /** A change as a replica carries it out, which knows the receipts of the server before it. */
  known(change: Change): Change {
    const checks = change.checks.map((check) => {
      const { receipt } = check as { receipt?: Receipt }
      const incarnation = this.#successors.get(receipt?.incarnation)
      return incarnation ? { ...check, receipt: { ...receipt, incarnation } } : check
    })
    return { ...change, checks } as Change
  }

  /** Writes to the history what the store alone knows. */
  note(
    checks: readonly Pick<Check, 'key' | 'policy' | 'cost'>[],
    decision: 'reset' | 'unknown',
  ): void {
    const at = { start: this.#time.nowMs, end: this.#time.nowMs, process: '' }
    for (const { key, policy, cost } of checks) {
      if (policy.name === 'a') this.lines.push({ ...at, key, policy: 'a', cost, decision })
    }
  }

  /** The replica takes over, without the writes of the last moments. */
  failOver(lagMs: number): void {
    const arrived = this.#writes.filter(({ atMs }) => atMs <= this.#time.nowMs - lagMs)
    for (const { checks } of this.#writes.slice(arrived.length)) {
      for (const { cost, policy } of checks) if (policy.name === 'a') this.lostUnits += cost
    }
    this.#writes = arrived
    this.#memory = this.#core.memoryStore()
    this.#successors = new Map()
    for (const { atMs, write, answer } of arrived) {
      const again = this.#time.at(atMs, () => write(this.#memory))
      const receipts = receiptsOf(again)
      for (const [index, before] of receiptsOf(answer).entries()) {
        this.#successors.set(before?.incarnation, receipts[index]?.incarnation)
      }
    }
  }
}

type Decide<T> = (store: MemoryStore) => T

interface Write {
  readonly atMs: number
  readonly checks: readonly Check[]
  readonly write: Decide<unknown>
  readonly answer: unknown
}

/** The receipts of an answer, if it has outcomes. */
function receiptsOf(answer: unknown): readonly (Receipt | undefined)[] {
  const outcomes: readonly Partial<Outcome>[] = Array.isArray(answer) ? answer : []
  return outcomes.map(({ receipt }) => receipt)
}

/** The connection of one process to a server. Messages keep their order, as on TCP. */
class Link implements Store {
  readonly denials = { ttlMs: 1_000 }
  delays: readonly [number, number] = [1, 1]
  isDown = false
  /**
   * Requests arrive twice: a client sends them again after it has connected again. Refunds do not:
   * a store does not know that it has had one, and would give back units of others.
   */
  isDoubling = false
  readonly #time: VirtualTime
  readonly #server: Server
  #under = new Set<(error: Error) => void>()
  #arrivesAt = 0
  #answersAt = 0

  constructor(time: VirtualTime, server: Server) {
    this.#time = time
    this.#server = server
  }

  apply(op: DecidingOp, checks: readonly Check[]): Promise<readonly Outcome[]> {
    return this.#send((store) => store.apply(op, checks), op === 'peek' ? [] : checks)
  }

  change(change: Change): Promise<readonly boolean[]> {
    const isDoubling = this.isDoubling && change.op !== 'refund'
    const decide: Decide<ReturnType<Store['change']>> = (store) => {
      if (change.op === 'reset') this.#server.note(change.checks, 'reset')
      return store.change(this.#server.known(change))
    }
    return this.#send(decide, [], isDoubling)
  }

  grant(checks: readonly GrantCheck[]): Promise<readonly Granted[]> {
    return this.#send((store) => store.grant(checks), checks)
  }

  /** Cuts the connection: messages on their way never arrive, and answers are lost. */
  cut(): void {
    for (const reject of this.#under) reject(new Error('cut'))
    this.#under.clear()
  }

  #send<T>(
    decide: Decide<T>,
    checks: readonly Check[],
    isDoubling = this.isDoubling,
  ): Promise<Awaited<T>> {
    if (this.isDown) return Promise.reject(new Error('down'))
    const time = this.#time
    const [requestMs, replyMs] = this.delays
    return new Promise((resolve, reject) => {
      this.#under.add(reject)
      this.#arrivesAt = Math.max(this.#arrivesAt, time.nowMs + requestMs * Math.random())
      const arrive = () => {
        if (!this.#under.has(reject)) return
        let answer = this.#server.decide(decide, checks)
        if (isDoubling) {
          this.#server.note(checks, 'unknown')
          answer = this.#server.decide(decide, checks)
        }
        this.#answersAt = Math.max(this.#answersAt, time.nowMs + replyMs * Math.random())
        setTimeout(() => {
          if (this.#under.delete(reject)) resolve(answer as Awaited<T>)
        }, this.#answersAt - time.nowMs)
      }
      // A message that was sent arrives, whatever becomes of its process.
      time.as(undefined, () => setTimeout(arrive, this.#arrivesAt - time.nowMs))
    })
  }
}

interface Process extends VirtualProcess {
  readonly links: readonly Link[]
  readonly limiter: CheckLimiter
}

export interface FleetRun {
  readonly lines: readonly HistoryLine[]
  readonly law: HistoryLaw
}

/** The findings in a run that break what its kind promises. */
export function brokenBy({ promises }: FleetKind, { lines, law }: FleetRun): readonly Finding[] {
  const { findings } = checkHistory(lines, { a: law })
  return findings.filter(({ kind }) => kind === 'over-limit' || promises?.includes(kind))
}

/** Runs a plan in virtual time. All of core is the product's own; the network is simulated. */
export async function runFleet(
  core: Core,
  kind: FleetKind,
  plan: Drawn<typeof plans>,
): Promise<FleetRun> {
  using time = new VirtualTime(plan.seed)
  const fleet = new Fleet(time, core, kind)
  for (const each of plan.steps) await fleet.act(each)
  await fleet.close()
  const extraUnits = (kind.extraUnits ?? 0) + fleet.lostUnits
  return { lines: fleet.lines, law: { limit: fleet.limit, windowMs, extraUnits } }
}

class Fleet {
  readonly lines: HistoryLine[] = []
  readonly #time: VirtualTime
  readonly #core: Core
  readonly #kind: FleetKind
  readonly #global: Server
  readonly #locals: readonly Server[]
  readonly #processes: Process[]
  /** Crashes take units with them that were decided ahead. */
  #crashes = 0

  constructor(time: VirtualTime, core: Core, kind: FleetKind) {
    this.#time = time
    this.#core = core
    this.#kind = kind
    this.#global = new Server(time, core)
    this.#locals = kind.regions ? [new Server(time, core), new Server(time, core)] : []
    this.#processes = Array.from({ length: processes }, (_, index) => this.#start(index))
  }

  get limit(): number {
    return this.#kind.limit ?? defaultLimit
  }

  get lostUnits(): number {
    const servers = [this.#global, ...this.#locals]
    const ahead = this.#kind.policy?.async ? this.#crashes * maxUncounted : 0
    return servers.reduce((units, server) => units + server.lostUnits, ahead)
  }

  #start(index: number): Process {
    const { policy, failureMode = 'closed' } = this.#kind
    const process: VirtualProcess = { skewMs: 0, pausedUntilMs: 0, isDead: false }
    const global = new Link(this.#time, this.#global)
    const server = this.#locals[index % 2]
    const local = server && new Link(this.#time, server)
    const limiter = this.#time.as(process, () => {
      const options: LimiterOptions = {
        policies: [
          { name: 'a', limit: this.limit, window: windowMs, ...policy } as never,
          { name: 'wide', limit: 1_000_000, window: '1m' },
        ],
        store: local
          ? this.#core.regionalStore({
              ...{ region: `r${index % 2}`, local, global },
              shares: { r0: 0.3, r1: 0.3 },
            })
          : global,
        ...{ instances: processes, failureMode, observers: { onStoreError: () => undefined } },
      }
      return this.#core.createCheckLimiter(options)
    })
    return Object.assign(process, { links: local ? [global, local] : [global], limiter })
  }

  async act({
    process: index,
    key,
    requests,
    cost,
    action,
    waitMs,
  }: Drawn<typeof step>): Promise<void> {
    const process = this.#processes[index]
    if (!process) return
    const { links, limiter } = process
    for (const link of links.slice(0, 1)) {
      if (action === 'cut') link.cut()
      if (action === 'down' || action === 'up') link.isDown = action === 'down'
      if (action === 'slow') link.delays = [40, 30]
      if (action === 'stuck') link.delays = [5, 350]
      if (action === 'quick') link.delays = [1, 1]
      if (action === 'twice' || action === 'quick') link.isDoubling = action === 'twice'
    }
    const does = (run: () => unknown) => this.#time.as(process, run)
    if (action === 'peek') does(() => void limiter.peek(key, { cost }))
    if (action === 'charge') does(() => void limiter.charge('other', { cost }))
    if (action === 'reset') does(() => void limiter.reset('reset').catch(() => undefined))
    if (action === 'pause') process.pausedUntilMs = this.#time.nowMs + 50 * cost + waitMs
    if (action === 'skew') process.skewMs = (cost - 3) * 1_000
    if (action === 'failover') this.#global.failOver(4 * cost)
    if (action === 'crash') {
      process.isDead = true
      this.#crashes += 1
      this.#processes[index] = this.#start(index)
    }
    const runs = this.#processes[index] ?? process
    for (let i = 0; i < requests && runs.pausedUntilMs <= this.#time.nowMs; i += 1) {
      this.#time.as(runs, () => this.#consume(runs, index, { key, cost, number: i }))
    }
    await this.#time.advance(waitMs)
  }

  #consume(
    { limiter }: Process,
    process: number,
    { key, cost, number }: { key: string; cost: number; number: number },
  ): void {
    const [policy, wide] = limiter.policies
    if (!policy || !wide) return
    const isChanging = key === 'changing' && !this.#kind.hasOneLimit
    const isLow = isChanging && Math.floor(this.#time.nowMs / 3_000) % 2 === 1
    const check = { policy, key, cost, limit: isLow ? this.limit / 2 : this.limit }
    const beside = { policy: wide, key, cost: 1, limit: wide.limit }
    const start = this.#time.nowMs
    const id = this.lines.length
    const line = { start, process: `${process}`, key, policy: 'a', cost, id }
    // Until it is answered, it may be admitted.
    this.lines.push({ ...line, end: null, decision: 'unknown' })
    const settle = (decision: Decision): void => {
      const outcome = decision.outcomes.find((each) => each.policy === policy)
      const { allowed, source } = decision
      if (!outcome || (!allowed && source !== 'store')) return
      const { remaining, retryAfterMs, limit: applied } = outcome
      const isRefunded = allowed && key === 'refunded' && number % 3 === 0
      this.lines[id] = {
        ...{ ...line, end: isRefunded ? null : this.#time.nowMs, limit: applied },
        decision: isRefunded ? 'refunded' : allowed ? 'allowed' : 'denied',
        // A denial that is repeated here has the number of units that it had at the store.
        ...(remaining !== undefined && isAsked && { remaining }),
        // A process learns of the resets of others up to `denialTtlMs` late: till then it repeats the wait of before.
        ...((isAsked || key !== 'reset') && {
          retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
        }),
      }
      if (isRefunded) void limiter.refund(decision)
    }
    const answer = limiter.decide(number % 6 === 1 ? [check, beside] : [check])
    const isAsked = answer instanceof Promise
    void Promise.resolve(answer).then(settle)
  }

  async close(): Promise<void> {
    for (const { links } of this.#processes) for (const link of links) link.cut()
    await this.#time.advance(2_500)
    for (const server of [this.#global, ...this.#locals]) this.lines.push(...server.lines)
  }
}
