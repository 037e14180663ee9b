import { clockMs, never } from './clock.ts'
import type { Gate } from './gate.ts'
import { maxTimerMs } from './pause.ts'

/** A call that wants to pass its gates. */
export interface Waiter {
  /** Earlier it may not go, whatever the gates say. */
  readonly notBeforeMs: number
  /** Those that are on its way, as far as is known by now. */
  gates(): readonly Gate[]
  /** How long it would wait from now. */
  patienceMs(nowMs: number): number
  /** Is called when it has passed its gates. */
  passed(gates: readonly Gate[]): void
  /** Is called instead when it would have to wait longer than it would. */
  gaveUp(waitMs: number): void
}

/** What those in front leave of a gate. */
interface Rest {
  /** When the next one may go: one that keeps the pace, and one that does not. */
  pacedMs: number
  clearMs: number
  /** When the first of them goes that another gate holds for longer. It must find this one free. */
  dueMs: number
  /** How many wait for this one more than for any other. */
  waiting: number
}

/** Sums of clock times with fractions differ in their last digits. */
const roundingMs = 0.01

/**
 * Those who wait at the gates of one key, in the order they came. A call that one gate holds for long takes nothing of the
 * others meanwhile: calls behind it pass as long as they do not delay it. So nobody is starved, and one that leaves leaves
 * nothing behind.
 */
export class Line {
  /** When each of them will go, as far as is known. */
  readonly #waiting = new Map<Waiter, number>()
  readonly #rests = new Map<Gate, Rest>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #timerMs = never
  /** Whether somebody has left since all were given their times. */
  #isStale = false

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** How many calls wait for a gate, as of when they were given their times. */
  waitingFor(gate: Gate): number {
    return this.isEmpty ? 0 : (this.#rests.get(gate)?.waiting ?? 0)
  }

  /** Puts a call at the end, unless it may pass, or gives up, at once. Answers how long it will wait, as far as is known. */
  join(waiter: Waiter): number {
    const nowMs = clockMs()
    if (this.isEmpty) this.#rests.clear()
    const goesMs = this.#goesMs(waiter, nowMs)
    const isSure = goesMs <= nowMs || (!this.#isStale && this.#isPatient(waiter, goesMs, nowMs))
    if (isSure || this.isEmpty) {
      this.#wakeAt(Math.min(this.#timerMs, this.#place(waiter, goesMs, nowMs)))
    } else {
      this.#waiting.set(waiter, goesMs)
      this.move()
    }
    return (this.#waiting.get(waiter) ?? nowMs) - nowMs
  }

  leave(waiter: Waiter): void {
    if (!this.#waiting.delete(waiter)) return
    this.#isStale = true
    if (this.isEmpty) this.#wakeAt(never)
  }

  /** Lets those pass whose time has come, and gives all others new times. Must follow what may let them go earlier. */
  move(): void {
    const nowMs = clockMs()
    this.#rests.clear()
    this.#isStale = false
    let soonestMs = never
    for (const waiter of this.#waiting.keys()) {
      const goesMs = this.#goesMs(waiter, nowMs)
      soonestMs = Math.min(soonestMs, this.#place(waiter, goesMs, nowMs))
    }
    this.#wakeAt(soonestMs)
  }

  /** When a call may go without delaying those in front of it. */
  #goesMs(waiter: Waiter, nowMs: number): number {
    const fromMs = Math.max(nowMs, waiter.notBeforeMs)
    const gates = waiter.gates()
    const pacedMs = Math.max(fromMs, ...gates.map((gate) => this.#pacedSlotMs(gate, nowMs)))
    if (this.#isPatient(waiter, pacedMs, nowMs)) return pacedMs
    // The pace is the client's own idea: nobody has said that a call would be refused that does not keep it.
    const patientUntilMs = nowMs + waiter.patienceMs(nowMs)
    return Math.max(
      fromMs,
      ...gates.map((gate) => this.#unpacedSlotMs(gate, nowMs, patientUntilMs)),
    )
  }

  #pacedSlotMs(gate: Gate, nowMs: number): number {
    const { pacedMs, dueMs } = this.#restOf(gate)
    const slotMs = Math.max(nowMs, pacedMs)
    return besides(dueMs, slotMs, gate.distanceMs(slotMs, nowMs))
  }

  /** For a call that cannot keep the pace: it waits for the reset, where that is soon enough. */
  #unpacedSlotMs(gate: Gate, nowMs: number, patientUntilMs: number): number {
    const { pacedMs, clearMs, dueMs } = this.#restOf(gate)
    const resetMs = gate.resetMs <= patientUntilMs ? Math.min(gate.resetMs, pacedMs) : nowMs
    return besides(dueMs, Math.max(nowMs, clearMs, resetMs), gate.spacingMs(nowMs))
  }

  #restOf(gate: Gate): Rest {
    const { pacedMs, clearMs } = gate
    const rest = this.#rests.get(gate) ?? {
      pacedMs,
      clearMs,
      dueMs: never,
      waiting: 0,
    }
    rest.pacedMs = Math.max(rest.pacedMs, pacedMs)
    rest.clearMs = Math.max(rest.clearMs, clearMs)
    this.#rests.set(gate, rest)
    return rest
  }

  #isPatient(waiter: Waiter, goesMs: number, nowMs: number): boolean {
    return goesMs - nowMs <= waiter.patienceMs(nowMs) + roundingMs
  }

  /** Lets a call go, or give up, or wait until `goesMs`. Answers when it has to be looked at again. */
  #place(waiter: Waiter, goesMs: number, nowMs: number): number {
    const gates = waiter.gates()
    if (goesMs <= nowMs) {
      const hasWaited = this.#waiting.delete(waiter)
      for (const gate of gates) gate.pass(nowMs, { hasWaited })
      waiter.passed(gates)
      return never
    }
    if (!this.#isPatient(waiter, goesMs, nowMs)) {
      this.#waiting.delete(waiter)
      waiter.gaveUp(goesMs - nowMs)
      return never
    }
    this.#waiting.set(waiter, goesMs)
    for (const gate of gates) {
      const rest = this.#restOf(gate)
      const isHeldElsewhere = this.#pacedSlotMs(gate, nowMs) < goesMs
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

  #wakeAt(atMs: number): void {
    if (atMs === this.#timerMs) return
    clearTimeout(this.#timer)
    this.#timerMs = atMs
    if (atMs === never) return
    const tick = (): void => {
      this.#timerMs = never
      this.move()
    }
    // Timers may fire up to a millisecond early; then the times are the same, and a new one is set.
    this.#timer = setTimeout(tick, Math.min(Math.ceil(atMs - clockMs()), maxTimerMs))
  }
}

/** `slotMs`, or the one behind a call that goes at `dueMs`, where the two would be too close. */
function besides(dueMs: number, slotMs: number, distanceMs: number): number {
  return slotMs + distanceMs > dueMs ? Math.max(slotMs, dueMs + distanceMs) : slotMs
}
