import {
  andThen,
  type DecisionTiming,
  isPromise,
  type Limiter,
  type MaybePromise,
} from '@sluice/core'
import type { Access, AccessLists } from '../access/lists.ts'
import { deniedWithoutKey } from '../keys/missing-key.ts'
import type { Decided } from '../lifecycle/decided.ts'
import type { LoadShedder } from '../limits/shedder.ts'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { Passage } from '../request/passage.ts'
import type { Report } from '../request/user-functions.ts'
import type { FreeRetries } from './free-retries.ts'
import type { FoundChecks, RequestChecks } from './request-checks.ts'

// A guard is a chain of stages, put together once: skip, lists, preflights that pass, shed, checks,
// decide, respond. Each one answers a request, or hands it to the next. A stage that no option asks
// for is left out.

/** Decides on one request. */
export type Stage<Native extends object, Handler> = (
  context: RequestContext<Native>,
) => MaybePromise<Passage<Handler>>

/** Turns a request into checks. `access` is the answer of the lists for its address. */
export type CheckStage<Native extends object, Handler> = (
  context: RequestContext<Native>,
  access?: Access,
) => MaybePromise<Passage<Handler>>

/** Decides the checks of a request. */
export type DecideStage<Native extends object, Handler> = (
  context: RequestContext<Native>,
  checks: readonly PolicyCheck<Native>[],
) => MaybePromise<Passage<Handler>>

/** Asks for the decision on the checks of a request, and hands it to `respond`. */
export type Ask<Native extends object, Handler> = (
  context: RequestContext<Native>,
  checks: readonly PolicyCheck<Native>[],
  respond: RespondStage<Native, Handler>,
) => MaybePromise<Passage<Handler>>

/** Makes the passage of a decision. */
export type RespondStage<Native extends object, Handler> = (
  decided: Decided<Native>,
) => MaybePromise<Passage<Handler>>

/** Lets requests pass uncounted that the user's `skip` names. */
export function skipSome<Native extends object, Handler>(
  skip: (native: Native) => MaybePromise<boolean>,
  passUncounted: Stage<Native, Handler>,
  next: Stage<Native, Handler>,
): Stage<Native, Handler> {
  return (context) =>
    andThen(skip(context.native), (isSkipped) =>
      isSkipped ? passUncounted(context) : next(context),
    )
}

interface AccessStages<Native extends object, Handler> {
  readonly forbid: Stage<Native, Handler>
  readonly passUncounted: Stage<Native, Handler>
  readonly checkStage: CheckStage<Native, Handler>
  readonly next: Stage<Native, Handler>
}

/** Asks the lists about the address, which costs no key. An allowed request is not shed either. */
export function askLists<Native extends object, Handler>(
  lists: AccessLists,
  { forbid, passUncounted, checkStage, next }: AccessStages<Native, Handler>,
): Stage<Native, Handler> {
  return (context) => {
    const access = lists.ofAddress(context.request)
    if (access === 'unlisted') return next(context)
    if (access === 'block') return forbid(context)
    return lists.blockKeys ? checkStage(context, access) : passUncounted(context)
  }
}

/** Refuses requests of the less important classes under pressure. They are not counted. */
export function shedSome<Native extends object, Handler>(
  shedder: LoadShedder<Native>,
  { report, respond }: { report: Report; respond: RespondStage<Native, Handler> },
  next: Stage<Native, Handler>,
): Stage<Native, Handler> {
  return (context) =>
    andThen(shedder.refuses(context.native, report), (isRefused) => {
      if (!isRefused) return next(context)
      return respond({ context, decision: shedder.refusal, checks: [] })
    })
}

interface CheckStages<Native extends object, Handler> {
  readonly forbid: Stage<Native, Handler>
  readonly passUncounted: Stage<Native, Handler>
  readonly passKeyless: Stage<Native, Handler>
  readonly respond: RespondStage<Native, Handler>
  readonly next: DecideStage<Native, Handler>
}

/** Finds the checks of a request: identity, cost and limit. */
export function findChecks<Native extends object, Handler>(
  requestChecks: RequestChecks<Native>,
  { forbid, passUncounted, passKeyless, respond, next }: CheckStages<Native, Handler>,
): CheckStage<Native, Handler> {
  function goOn(
    context: RequestContext<Native>,
    found: FoundChecks<Native>,
  ): MaybePromise<Passage<Handler>> {
    if (found === 'block') return forbid(context)
    if (found === 'deny') return respond({ context, decision: deniedWithoutKey, checks: [] })
    if (found === 'allow') return passUncounted(context)
    return found.length === 0 ? passKeyless(context) : next(context, found)
  }

  return (context, access) => {
    const found = requestChecks.find(context, access)
    return isPromise(found) ? found.then((known) => goOn(context, known)) : goOn(context, found)
  }
}

/** Asks the limiter. */
export function askLimiter<Native extends object, Handler>(limiter: Limiter): Ask<Native, Handler> {
  return (context, checks, respond) => {
    const decision = limiter.decide(checks, context.native)
    return isPromise(decision)
      ? decision.then((known) => respond({ context, decision: known, checks }))
      : respond({ context, decision, checks })
  }
}

/** Asks the limiter, so that a retry costs nothing. */
export function askOnce<Native extends object, Handler>(
  freeRetries: FreeRetries<Native>,
): Ask<Native, Handler> {
  return (context, checks, respond) => andThen(freeRetries.decide(context, checks), respond)
}

/** Notes how long a decision takes: for observers. */
export function timed<Native extends object, Handler>(
  ask: Ask<Native, Handler>,
  begin: () => DecisionTiming,
): Ask<Native, Handler> {
  return (context, checks, respond) => {
    const timing = begin()
    let isImmediate = true
    const passage = ask(context, checks, ({ context, decision, checks, mayGiveBack }) => {
      timing.isImmediate = isImmediate
      timing.end()
      return respond({ context, decision, checks, mayGiveBack, timing })
    })
    isImmediate = false
    return passage
  }
}
