import type { Counted } from '../algorithms/algorithm.ts'
import type { Check } from '../check.ts'

/**
 * The states of keys that the engine works on: all that a backend has to provide. Nothing else may
 * change them meanwhile.
 */
export interface States {
  /**
   * Returns the state of a check's key; `undefined` for none. The engine changes the state in
   * place.
   */
  get(check: Check, now: number): Counted | undefined
  /** Begins another life of the key, with an empty state that takes the place of the one before. */
  begin(check: Check, now: number): Counted
  /** Forgets the key. Returns whether there was a state. */
  delete(check: Check): boolean
  /**
   * Which life of its key a state belongs to: equal for two states of one life, and for no others.
   * Receipts carry it, so that a refund after a reset finds nothing.
   */
  generationOf(state: Counted): unknown
  /** Changes with every key that begins or is dropped: what was found before may be another now. */
  readonly changes: number
}
