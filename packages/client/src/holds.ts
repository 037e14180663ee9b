import { Gate } from './gate.ts'

interface Hold {
  readonly gate: Gate
  readonly of: readonly Gate[]
}

/** Gates that nobody may pass until it is known whether they are to be closed. */
export class Holds {
  readonly #holds = new Set<Hold>()

  /** The gates on a way, with what holds any of them. */
  with(gates: readonly Gate[]): readonly Gate[] {
    if (this.#holds.size === 0) return gates
    const holds = [...this.#holds].filter(({ of }) => of.some((gate) => gates.includes(gate)))
    return [...gates, ...holds.map(({ gate }) => gate)]
  }

  /** Holds gates that are open. Returns what ends that; `undefined` where there was none to hold. */
  hold(
    gates: readonly Gate[],
    { nowMs, untilMs }: { nowMs: number; untilMs: number },
  ): (() => boolean) | undefined {
    // Of a herd that is refused, the first one holds the others.
    const of = gates.filter((gate) => gate.isOpen(nowMs) && !this.#isHeld(gate))
    if (of.length === 0) return undefined
    const hold: Hold = { gate: new Gate(undefined, { pace: false }), of }
    hold.gate.close({ toldMs: untilMs, sentMs: nowMs, nowMs, jitterMs: () => 0 })
    this.#holds.add(hold)
    return () => this.#holds.delete(hold)
  }

  #isHeld(gate: Gate): boolean {
    return [...this.#holds].some(({ of }) => of.includes(gate))
  }
}
