import type { Decision } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'

/**
 * Watches the asks of a store. A chain of calls alone would never see late answers: an ask with a
 * decision `meanwhile` is late.
 * @typeParam Answer the answer that makes it unnecessary to ask
 */
export interface Watch<Ask, Answer = Decision> {
  /** The store is about to be asked. */
  before?(ask: Ask): Answer | undefined
  /** The store answered, in time or not. */
  answered?(ask: Ask, found: readonly Outcome[], answer: Decision): void
  /** The store failed, in time or not, or its deadline has passed. */
  failed?(ask: Ask, error: unknown): void
}
