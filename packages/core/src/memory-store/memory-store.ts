import { type Counter, leavesTrace, outcomeOf, waitMs } from '../algorithms/counter.ts'
import { algorithms } from '../algorithms/table.ts'
import type { Check } from '../check.ts'
import { Receipt } from '../check.ts'
import { knownFields, wholeNumber } from '../options.ts'
import type { Outcome, Store, StoreOp } from '../store.ts'
import { type Cell, Cells } from './cells.ts'

export interface MemoryStoreOptions {
  /**
   * The most keys that are held. At the cap, expired ones go first, then the least used of a sample; one that is
   * exhausted never goes: when a whole sample is, new keys share one of 64 overflow buckets.
   * @default 100_000
   */
  maxKeys?: number
}

/** A store in this process: synchronous, bounded, without timers. */
export interface MemoryStore extends Store {
  apply(op: StoreOp, checks: readonly Check[]): readonly Outcome[]
  /** Keys held now, those not counted that have expired and not yet been swept. */
  readonly size: number
}

/** Counts in memory. The clock is `Date.now()`, read at each call, so that a faked one is obeyed. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  knownFields(options, 'memoryStore', ['maxKeys'])
  const cells = new Cells(
    wholeNumber(options.maxKeys ?? 100_000, { option: 'maxKeys' }, { min: 1 }),
  )
  return {
    apply: (op, checks) => operations[op](cells, checks, Date.now()),
    get size() {
      return cells.size
    },
  }
}

type Operation = (cells: Cells, checks: readonly Check[], now: number) => readonly Outcome[]

const operations: { readonly [op in StoreOp]: Operation } = { consume, peek, charge, refund, reset }

function consume(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  const found = checks.map((check) => settledCell(cells, check, now))
  const waits = checks.map((check, index) => waitMs(found[index] ?? fresh(check), check, now))
  if (waits.every((wait) => wait === 0)) {
    return checks.map((check, index) => taken(cells, check, { now, cell: found[index] }))
  }
  return checks.map((check, index) => {
    const cell = found[index]
    if (!check.policy.countDenied || !leavesTrace(check)) {
      return outcomeOf(cell ?? fresh(check), check, { now, retryAfterMs: waits[index] ?? 0 })
    }
    const charged = cells.toCharge(check, now, cell)
    take(charged, check, now)
    return outcomeOf(charged, check, { now, retryAfterMs: waitMs(charged, check, now) })
  })
}

function peek(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  return checks.map((check) => {
    const { algorithm, state } = cells.get(check, now) ?? fresh(check)
    const counter = { algorithm, state: algorithm.settle(state, check, now) }
    return outcomeOf(counter, check, { now, retryAfterMs: waitMs(counter, check, now) })
  })
}

function charge(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  return checks.map((check) => taken(cells, check, { now, cell: settledCell(cells, check, now) }))
}

function refund(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  return checks.map((check) => {
    const cell = settledCell(cells, check, now)
    if (cell && check.receipt?.incarnation === cell) {
      cell.algorithm.giveBack(cell.state, check, { now, at: check.receipt.at })
      // A key that nothing is left of ends its life, so that no receipt reaches what comes after.
      if (cell.algorithm.endsAt(cell.state, check) <= now) cells.delete(check)
    }
    return outcomeOf(cell ?? fresh(check), check, { now, retryAfterMs: 0 })
  })
}

function reset(cells: Cells, checks: readonly Check[], now: number): readonly Outcome[] {
  return checks.map((check) => {
    cells.delete(check)
    return outcomeOf(fresh(check), check, { now, retryAfterMs: 0 })
  })
}

/** The cell of a check with no time in it later than `now`. */
function settledCell(cells: Cells, check: Check, now: number): Cell | undefined {
  const cell = cells.get(check, now)
  if (cell) cell.state = cell.algorithm.settle(cell.state, check, now)
  return cell
}

function taken(
  cells: Cells,
  check: Check,
  { now, cell }: { now: number; cell: Cell | undefined },
): Outcome {
  if (!leavesTrace(check)) return outcomeOf(cell ?? fresh(check), check, { now, retryAfterMs: 0 })
  const charged = cells.toCharge(check, now, cell)
  const receipt = new Receipt(check, take(charged, check, now), charged)
  return { ...outcomeOf(charged, check, { now, retryAfterMs: 0 }), receipt }
}

function take(cell: Cell, check: Check, now: number): number {
  cell.check = check
  return cell.algorithm.take(cell.state, check, now)
}

function fresh(check: Check): Counter {
  const algorithm = algorithms[check.policy.algorithm]
  return { algorithm, state: algorithm.create() }
}
