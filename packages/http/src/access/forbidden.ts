import { andThen, type MaybePromise } from '@sluice/core'
import type { PolicyGuardOptions } from '../guard/options.ts'
import type { Passage } from '../guard/passage.ts'
import type { RequestDecision } from '../lifecycle/decision.ts'
import { refusalBody } from '../responses/refusal.ts'

/** The decision on a request that a list blocks: no policy was asked, and no wait helps. */
export const blocked: RequestDecision = {
  allowed: false,
  outcomes: [],
  retryAfterMs: Number.POSITIVE_INFINITY,
  delayMs: 0,
  source: 'store',
  policy: undefined,
  key: undefined,
  // Nothing was asked, so there is nobody to charge, and nothing to forget.
  charge: () => undefined,
  reset: async () => false,
}

/**
 * Refuses a request that a list blocks: 403, since it is over no limit. A `statusCode` and a fixed message speak of limits, so neither
 * applies; a handler, and a message that is found by a function, do.
 */
export function forbidden<Native, Handler>(
  { message, handler }: PolicyGuardOptions<Native, Handler>,
  native: Native,
): MaybePromise<Passage<Handler>> {
  const status = 403
  const found = typeof message === 'function' ? message : undefined
  const refusal = { native, decision: blocked, cause: 'quota', status, violated: [] } as const
  const body = handler ? undefined : refusalBody(found, refusal)
  return andThen(body, (known) => ({
    decision: blocked,
    verdict: {
      action: 'reject',
      decision: blocked,
      status,
      fields: [['Cache-Control', 'no-store']],
      body: known,
      handler,
    },
    hold: undefined,
  }))
}
