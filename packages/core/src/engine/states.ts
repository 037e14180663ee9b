import type { KeyState } from '../algorithms/algorithm.ts'
import type { Check } from '../model/check.ts'

/**
 * The states of keys that the engine works on: all that a backend has to provide. Nothing else may
 * change them meanwhile.
 */
export interface States {
  /**
   * Returns the state of a check's key; `undefined` for none. The engine changes the state in
   * place.
   */
  get(check: Check, now: number): KeyState | undefined
  /** Begins another incarnation of the key, with an empty state that replaces the one before. */
  begin(check: Check, now: number): KeyState
  /** Forgets the key. Returns whether there was a state. */
  delete(check: Check): boolean
  /**
   * Returns the incarnation of the key that a state belongs to. Receipts carry it, so that a refund
   * after a reset finds nothing.
   */
  incarnationOf(state: KeyState): unknown
  /**
   * Changes with every key that begins or is dropped. A state that was found before may be another
   * now.
   */
  readonly changes: number
}
