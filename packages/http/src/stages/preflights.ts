import { andThen, warnOnce } from '@sluice/core'
import { withoutStrike } from '../options/penalty.ts'
import { isPreflight } from '../request/request.ts'
import type { RequestChecks } from './request-checks.ts'
import type { GuardSetup } from './setup.ts'
import type { DecideStage, RespondStage, Stage } from './stages.ts'

/** Warns when the first preflight is counted, unless the user has chosen to count preflights. */
export function warnOfPreflights<Native extends object, Handler>(
  next: DecideStage<Native, Handler>,
): DecideStage<Native, Handler> {
  return (context, checks) => {
    if (isPreflight(context.request)) {
      warnOnce(
        `a limiter counted a CORS preflight, and a browser reports a refused preflight as a network error. Run the CORS middleware before the limiter, ` +
          `so that it answers preflights first; or set preflights: 'pass', after which whatever runs for OPTIONS behind the limiter is not limited`,
        'preflight that is counted',
      )
    }
    return next(context, checks)
  }
}

interface PassingStages<Native extends object, Handler> {
  readonly requestChecks: RequestChecks<Native>
  readonly forbid: Stage<Native, Handler>
  readonly respond: RespondStage<Native, Handler>
  readonly pass: Stage<Native, Handler>
  readonly next: Stage<Native, Handler>
}

/** Lets preflights pass without limits. Blocked keys are refused, by a list or by a penalty. */
export function passPreflights<Native extends object, Handler>(
  { limiter, lists, penalty }: GuardSetup<Native>,
  { requestChecks, forbid, respond, pass, next }: PassingStages<Native, Handler>,
): Stage<Native, Handler> {
  const asksKeys = penalty !== undefined || lists?.blockKeys === true
  return (context) => {
    if (!isPreflight(context.request)) return next(context)
    if (!asksKeys) return pass(context)
    return andThen(requestChecks.find(context), (found) => {
      if (found === 'block') return forbid(context)
      const check =
        typeof found === 'string' ? undefined : found.find(({ bound }) => bound === penalty)
      if (!check) return pass(context)
      const checks = [withoutStrike(check)]
      return andThen(limiter.decide(checks, context.native), (decision) =>
        decision.allowed ? pass(context) : respond({ context, decision, checks }),
      )
    })
  }
}
