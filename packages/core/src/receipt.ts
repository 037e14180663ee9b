import type { Check } from './store.ts'

/** What a refund gives back. Opaque to users; a store reads only the receipts that it wrote itself. */
export class Receipt {
  readonly check: Check
  /** The time that the units are recorded under. */
  readonly at: number
  /** Which life of the key took them: a reset key begins another. */
  readonly incarnation: unknown

  constructor(check: Check, at: number, incarnation: unknown) {
    this.check = check
    this.at = at
    this.incarnation = incarnation
  }

  /** A decision may be written to a log; the identity in its receipts must not be. */
  toJSON(): undefined {
    return undefined
  }
}
