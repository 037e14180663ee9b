import type { Gate } from './gate.ts'
import type { Waiter } from './line.ts'
import type { Waiting } from './pause.ts'

type Plan = Pick<Waiter, 'notBeforeMs' | 'gates' | 'patienceMs'>

/** What becomes of one call in the line. */
export class Turn implements Waiter {
  readonly notBeforeMs: number
  readonly gates: Waiter['gates']
  readonly patienceMs: Waiter['patienceMs']
  /** Whom to wake when it is over. */
  readonly waking: Waiting = new Set()
  /** The gates that it has passed. */
  passedGates: readonly Gate[] | undefined
  tooLongMs: number | undefined

  constructor({ notBeforeMs, gates, patienceMs }: Plan) {
    this.notBeforeMs = notBeforeMs
    this.gates = gates
    this.patienceMs = patienceMs
  }

  get isOver(): boolean {
    return this.passedGates !== undefined || this.tooLongMs !== undefined
  }

  passed(gates: readonly Gate[]): void {
    this.passedGates = gates
    this.#wake()
  }

  gaveUp(waitMs: number): void {
    this.tooLongMs = waitMs
    this.#wake()
  }

  #wake(): void {
    for (const wake of [...this.waking]) wake()
  }
}
