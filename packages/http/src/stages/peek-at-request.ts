import { andThen, type Limiter, type MaybePromise, type Peeked } from '@sluice/core'
import type { AccessLists } from '../access/lists.ts'
import type { Asking, RequestChecks } from './request-checks.ts'

/** The parts of a guard that say what a request is counted as. */
interface CountingParts<Native extends object> {
  readonly skip: ((native: Native) => MaybePromise<boolean>) | undefined
  readonly lists: AccessLists | undefined
  readonly requestChecks: RequestChecks<Native>
  readonly limiter: Limiter
}

/** The answer for a request that passes uncounted. */
export const passes: Peeked = {
  allowed: true,
  outcomes: [],
  retryAfterMs: 0,
  delayMs: 0,
  source: 'store',
}

/** The answer for a request that a list blocks, or that has no key: no wait helps. */
const refused: Peeked = { ...passes, allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }

/** Answers what a request would get by its own key, limit and cost, and takes nothing. */
export function peekAtRequest<Native extends object>(
  { skip, lists, requestChecks, limiter }: CountingParts<Native>,
  asking: Asking<Native>,
): MaybePromise<Peeked> {
  return andThen(skip?.(asking.native), (isSkipped) => {
    const access = lists?.ofAddress(asking.request)
    if (isSkipped || (access === 'allow' && !lists?.blockKeys)) return passes
    if (access === 'block') return refused
    return andThen(requestChecks.find(asking, access), (found) => {
      if (found === 'block' || found === 'deny') return refused
      return found === 'allow' || found.length === 0 ? passes : limiter.peekChecks(found)
    })
  })
}
