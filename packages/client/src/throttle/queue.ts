import { clockMs, maxTimerMs, never, type Waiting } from '../runtime/clock.ts'
import type { Gate } from './gate.ts'

/** A call that waits to pass its gates. */
export interface Waiter {
  /** Earliest time for the call, regardless of the gates. */
  readonly notBeforeMs: number
  /** Gates of the call, as far as known. */
  gates(): readonly Gate[]
  /** Maximum wait (ms) that the call accepts from now on. */
  patienceMs(nowMs: number): number
  /** Functions to call when the wait is over: when `passed` or `tooLongMs` is set. */
  readonly waking: Waiting
  /** The gates that it has passed. */
  passed: readonly Gate[] | undefined
  /** Wait (ms) that was too long for the call, if there was one. */
  tooLongMs: number | undefined
}

/** Times at which a gate is free behind the calls in front. */
interface Rest {
  /** Time for the next call: one that keeps the pace, and one that does not. */
  pacedMs: number
  clearMs: number
  /** Time of the first call that another gate holds longer. This gate must be free for it. */
  dueMs: number
  /** Calls that wait longer for this gate than for any other. */
  waiting: number
}

/** Time (ms) for which a plan is valid: served calls release others earlier. */
const maxHoldsMs = 1000

/** Minimum time (ms) between two plans: many calls may be sent or served at once. */
const betweenPlansMs = 20

/** Tolerance for sums of fractional clock times, whose last digits differ. */
const roundingMs = 0.01

/**
 * The calls that wait at the gates of one key, in order of arrival. If one gate holds a call for
 * long, calls behind it pass the other gates, as long as they do not delay it. So no call starves.
 */
export class CallQueue {
  /** Planned time of each waiting call. */
  readonly #waiting = new Map<Waiter, number>()
  readonly #rests = new Map<Gate, Rest>()
  /** Time of the last plan. */
  #nowMs = 0
  /** Time until which the plan is valid. */
  #holdsMs = 0
  #movedMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #timerMs = never

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Calls that wait for a gate, as of the last plan. */
  waitingFor(gate: Gate): number {
    return this.isEmpty ? 0 : (this.#rests.get(gate)?.waiting ?? 0)
  }

  /** Lets a call pass or give up, or queues it. Returns the expected wait (ms). */
  join(waiter: Waiter): number {
    this.#nowMs = clockMs()
    if (this.isEmpty) this.#rests.clear()
    const goesMs = this.#goesMs(waiter)
    const holds = this.#nowMs < this.#holdsMs
    if (holds || goesMs <= this.#nowMs || this.isEmpty) {
      this.#wakeAt(Math.min(this.#timerMs, this.#place(waiter, goesMs)))
    } else {
      this.#waiting.set(waiter, goesMs)
      this.move()
    }
    return (this.#waiting.get(waiter) ?? this.#nowMs) - this.#nowMs
  }

  leave(waiter: Waiter): void {
    if (!this.#waiting.delete(waiter)) return
    if (this.isEmpty) this.#wakeAt(never)
    else this.moveSoon()
  }

  /** Plans the calls at once, or a moment later if they were just planned. */
  moveSoon(): void {
    const soonMs = Math.max(clockMs(), this.#movedMs + betweenPlansMs)
    this.#holdsMs = Math.min(this.#holdsMs, soonMs)
    this.#wakeAt(Math.min(this.#timerMs, soonMs))
  }

  /** Lets due calls pass, and plans all others again. Must follow each change of a gate. */
  move(): void {
    this.#nowMs = clockMs()
    this.#movedMs = this.#nowMs
    this.#holdsMs = this.#nowMs + maxHoldsMs
    this.#rests.clear()
    let soonestMs = never
    for (const waiter of this.#waiting.keys()) {
      soonestMs = Math.min(soonestMs, this.#place(waiter, this.#goesMs(waiter)))
    }
    this.#wakeAt(soonestMs)
  }

  /** Lets due calls pass. Replans the others, which may be many, only if a time was wrong. */
  #tick(): void {
    this.#timerMs = never
    this.#nowMs = clockMs()
    let soonestMs = never
    let holds = this.#nowMs < this.#holdsMs
    for (const [waiter, goesMs] of this.#waiting) {
      const isDue = goesMs <= this.#nowMs
      if (isDue) holds &&= waiter.gates().every(({ pacedMs }) => pacedMs <= this.#nowMs)
      if (!holds) break
      if (isDue) this.#pass(waiter)
      else soonestMs = Math.min(soonestMs, goesMs)
    }
    if (holds) this.#wakeAt(soonestMs)
    else this.move()
  }

  /** Returns the time at which a call may be sent without delaying calls ahead of it. */
  #goesMs(waiter: Waiter): number {
    const latest = (slotMs: (gate: Gate) => number): number =>
      Math.max(this.#nowMs, waiter.notBeforeMs, ...waiter.gates().map(slotMs))
    const pacedMs = latest((gate) => this.#pacedSlotMs(gate))
    if (this.#isPatient(waiter, pacedMs)) return pacedMs
    // Only the client's own pace holds the call; no server has refused it. If the call cannot keep
    // the pace, it waits for the reset, if that is soon enough.
    return latest((gate) => {
      const rest = this.#restOf(gate)
      const resetMs = this.#isPatient(waiter, gate.resetMs) ? gate.resetMs : 0
      const slotMs = Math.max(rest.clearMs, Math.min(resetMs, rest.pacedMs))
      return this.#besides(rest, slotMs, gate.spacingMs(this.#nowMs))
    })
  }

  #pacedSlotMs(gate: Gate): number {
    const rest = this.#restOf(gate)
    return this.#besides(rest, rest.pacedMs, gate.distanceMs(rest.pacedMs, this.#nowMs))
  }

  /** Returns `slotMs`, or a time after the call at `dueMs` if the two calls would be too close. */
  #besides({ dueMs }: Rest, slotMs: number, distanceMs: number): number {
    const goesMs = Math.max(this.#nowMs, slotMs)
    return goesMs + distanceMs > dueMs ? Math.max(goesMs, dueMs + distanceMs) : goesMs
  }

  #restOf(gate: Gate): Rest {
    const { pacedMs, clearMs } = gate
    const rest = this.#rests.get(gate) ?? { pacedMs, clearMs, dueMs: never, waiting: 0 }
    rest.pacedMs = Math.max(rest.pacedMs, pacedMs)
    rest.clearMs = Math.max(rest.clearMs, clearMs)
    this.#rests.set(gate, rest)
    return rest
  }

  /** A hold is short, and may end without closing the gate. */
  #isPatient(waiter: Waiter, goesMs: number): boolean {
    const heldMs = Math.max(this.#nowMs, ...waiter.gates().map((gate) => gate.heldMs))
    return goesMs - heldMs <= waiter.patienceMs(this.#nowMs) + roundingMs
  }

  /** Sends a call, gives it up, or lets it wait until `goesMs`. Returns when to check it again. */
  #place(waiter: Waiter, goesMs: number): number {
    const nowMs = this.#nowMs
    if (goesMs <= nowMs) {
      this.#pass(waiter)
      return never
    }
    if (!this.#isPatient(waiter, goesMs)) {
      waiter.tooLongMs = goesMs - nowMs
      this.#end(waiter)
      return never
    }
    this.#waiting.set(waiter, goesMs)
    for (const gate of waiter.gates()) {
      const rest = this.#restOf(gate)
      const isHeldElsewhere = this.#pacedSlotMs(gate) < goesMs
      if (isHeldElsewhere) {
        rest.dueMs = Math.min(rest.dueMs, goesMs)
      } else {
        rest.waiting += 1
        rest.pacedMs = Math.max(rest.pacedMs, goesMs + gate.distanceMs(goesMs, nowMs))
        rest.clearMs = Math.max(rest.clearMs, nowMs) + gate.spacingMs(nowMs)
      }
    }
    return goesMs
  }

  #pass(waiter: Waiter): void {
    waiter.passed = waiter.gates()
    const hasWaited = this.#end(waiter)
    for (const gate of waiter.passed) gate.pass(this.#nowMs, { hasWaited })
  }

  /** Returns true if the call had waited. */
  #end(waiter: Waiter): boolean {
    for (const wake of [...waiter.waking]) wake()
    return this.#waiting.delete(waiter)
  }

  #wakeAt(atMs: number): void {
    if (atMs === this.#timerMs) return
    clearTimeout(this.#timer)
    this.#timerMs = atMs
    if (atMs === never) return
    // Timers may fire up to a millisecond early; then another one is set.
    const waitMs = Math.min(Math.ceil(atMs - clockMs()), maxTimerMs)
    this.#timer = setTimeout(() => this.#tick(), waitMs)
  }
}
