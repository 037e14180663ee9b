import { andThen, type Limiter } from '@sluice/core'
import type { Decided } from './account.ts'

/** Gives back all that a request took, if nothing went by it: nobody waits for that. */
export function giveBack<Native extends object>(
  { decision, mayGiveBack = () => true }: Decided<Native>,
  limiter: Limiter,
): void {
  void andThen(mayGiveBack(), (may) => may && limiter.refund(decision))
}
