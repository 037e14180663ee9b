import {
  andThen,
  DecisionTiming,
  isPromise,
  type MaybePromise,
  type Peeked,
  processWide,
  type SkipEvent,
  warnOnce,
} from '@sluice/core'
import type { Access } from '../access/lists.ts'
import { Decided } from '../lifecycle/decided.ts'
import { DelayQueue } from '../lifecycle/delay-queue.ts'
import type { Decide, Found } from '../lifecycle/found.ts'
import { type LoadShedder, loadShedder } from '../limits/shedder.ts'
import type { PolicyGuardOptions } from '../options/options.ts'
import { withoutStrike } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { isPreflight } from '../request/exchange.ts'
import { type Passage, passWithoutFields, refuseUnasked } from '../request/passage.ts'
import { createAdmitting } from './admit.ts'
import { freeRetries } from './free-retries.ts'
import { type Asking, type FoundChecks, requestChecks } from './request-checks.ts'
import { Responder } from './responder.ts'
import { type GuardSetup, limiterFieldsOf, type PolicyGuardPlace, setUpGuard } from './setup.ts'

/** Decides one list of policies for every request that it is given. */
export interface PolicyGuard<Native extends object, Handler> {
  /** Returns whether redirects may have to lose their headers again. */
  readonly hidesOnRedirect: boolean
  /**
   * Decides on a request, and tells the adapter what to do. Synchronous when the store and all
   * functions of the user are.
   * @throws or rejects with the errors of users' functions
   */
  check(context: RequestContext<Native>): MaybePromise<Passage<Handler>>
  /** Answers what a request would get by its own key, limit and cost. Takes nothing. */
  peek(asking: Asking<Native>): MaybePromise<Peeked>
}

/** The answer for a request that a list blocks, or that has no key: no wait helps. */
const refused = refuseUnasked('store')

/** The answer for a request that passes uncounted. */
export const passes: Peeked = { ...refused, allowed: true, retryAfterMs: 0 }

/** A guard of one list of policies, with the parts that guards of routes share with it. */
export interface OpenGuard<Native extends object, Handler> extends PolicyGuard<Native, Handler> {
  readonly setup: GuardSetup<Native, Handler>
  readonly delayQueue: DelayQueue
  readonly shedder: LoadShedder<Native> | undefined
}

/**
 * Makes a guard of one list of policies. Its stages, in this order: skip, lists, preflights that
 * pass, shed, checks, decide, respond. Each one answers a request, or passes it to the next.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createPolicyGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): OpenGuard<Native, Handler> {
  type Context = RequestContext<Native>
  type MaybePassage = MaybePromise<Passage<Handler>>
  const setup = setUpGuard(options, place)
  const { admission, limiter, lists, observation, penalty, policies, preflights, skip } = setup
  const delayQueue = place.inherited?.delayQueue ?? new DelayQueue(setup.maxWaiting)
  const shedder = place.inherited?.shedder ?? (setup.shed && loadShedder(setup.shed))
  const findChecks = requestChecks(setup)
  const responder = new Responder(setup, delayQueue)
  const admitting = admission && createAdmitting(admission, limiter, responder)
  const askOnce: Decide<Native> = (context, checks, timing) =>
    andThen(limiter.decide(checks, context.native), (decision) => {
      return { context, decision, checks, timing }
    })
  const { idempotencyKey: key } = setup
  const retried = { decide: askOnce, policies, options: limiterFieldsOf(options) }
  /** Decides by several calls of the store. */
  const askOften = setup.askReserving ?? (key && freeRetries({ ...retried, key }))
  const decide = askOften ?? askOnce
  /** Only until the code that made it has run: a handler must not make a guard for one request. */
  let isNew = !place.identifiedByScope
  // Guards of routes may be made on first use, and then are kept.
  void Promise.resolve().then(() => {
    isNew = false
  })

  function check(context: Context): MaybePassage {
    if (isNew) {
      isNew = false
      noteUseAtOnce(setup.where)
    }
    if (!skip) return askLists(context)
    return andThen(skip(context.native), (isSkipped) =>
      isSkipped ? pass(context, 'skip') : askLists(context),
    )
  }

  function peek(asking: Asking<Native>): MaybePromise<Peeked> {
    return andThen(skip?.(asking.native), (isSkipped) => {
      const access = lists?.ofAddress(asking.request)
      if (isSkipped || (access === 'allow' && !lists?.blockKeys)) return passes
      if (access === 'block') return refused
      return andThen(findChecks(asking, access), (found) => {
        if (found === 'block' || found === 'deny') return refused
        return found === 'allow' || found.length === 0 ? passes : limiter.peekChecks(found)
      })
    })
  }

  function pass(context: Context, reason: SkipEvent['reason']): MaybePassage {
    observation.notifySkip(context, reason)
    if (!admitting || reason === 'preflight') return passWithoutFields
    return admitting.admitUnlimited(context)
  }

  /** Asks the lists about the address: it costs no key. An allowed request is not shed either. */
  function askLists(context: Context): MaybePassage {
    const access = lists ? lists.ofAddress(context.request) : 'unlisted'
    if (access === 'unlisted') return passPreflights(context)
    if (access === 'block') return responder.forbid(context)
    return lists?.blockKeys ? checkAll(context, access) : pass(context, 'allow')
  }

  /** Lets preflights pass without limits. Blocked keys are refused, by a list or by a penalty. */
  function passPreflights(context: Context): MaybePassage {
    if (preflights !== 'pass' || !isPreflight(context.request)) return shed(context)
    if (!penalty && !lists?.blockKeys) return pass(context, 'preflight')
    return andThen(findChecks(context), (found) => {
      if (found === 'block') return responder.forbid(context)
      const blocking =
        typeof found === 'string' ? undefined : found.find(({ bound }) => bound === penalty)
      if (!blocking) return pass(context, 'preflight')
      const checks = [withoutStrike(blocking)]
      return andThen(limiter.decide(checks, context.native), (decision) =>
        decision.allowed ? pass(context, 'preflight') : respond({ context, decision, checks }),
      )
    })
  }

  /** Refuses requests of the less important classes under pressure. They are not counted. */
  function shed(context: Context): MaybePassage {
    if (!shedder) return checkAll(context)
    return andThen(shedder.refuses(context.native, setup.report), (isRefused) =>
      isRefused ? respond({ context, decision: shedder.refusal, checks: [] }) : checkAll(context),
    )
  }

  function checkAll(context: Context, access?: Access): MaybePassage {
    const found = findChecks(context, access)
    return isPromise(found) ? found.then((known) => goOn(context, known)) : goOn(context, found)
  }

  function goOn(context: Context, found: FoundChecks<Native>): MaybePassage {
    if (found === 'block') return responder.forbid(context)
    if (found === 'allow') return pass(context, 'allow')
    if (found === 'deny') return respond({ context, decision: refused, checks: [] })
    if (found.length === 0) return pass(context, 'no-key')
    if (preflights === undefined && isPreflight(context.request)) warnOfPreflight()
    const timing = begin()
    const decided = decide(context, found, timing)
    if (!isPromise(decided)) return answer(decided)
    if (timing) timing.isImmediate = false
    return decided.then(answer)
  }

  /** Several calls of the store have a timing of their own. */
  function begin(): DecisionTiming | undefined {
    if (!observation.isObserved) return undefined
    const timing = askOften ? new DecisionTiming() : observation.time()
    timing.isImmediate = true
    return timing
  }

  function answer(found: Found<Native>): MaybePassage {
    found.timing?.end()
    return admitting ? admitting.admitOrRespond(new Decided(setup, found)) : respond(found)
  }

  /** Answers a request that no admission can take. */
  function respond(found: Found<Native>): MaybePassage {
    return responder.respond(new Decided(setup, found))
  }

  return { setup, hidesOnRedirect: setup.hideOnRedirect, delayQueue, shedder, check, peek }
}

const usedAtOnce = processWide('@sluice/http/used-at-once/1', () => ({ guards: 0 }))

/** One guard that is used as soon as it is made may be kept. A second one shows a mistake. */
function noteUseAtOnce(where: string): void {
  usedAtOnce.guards += 1
  if (usedAtOnce.guards < 2) return
  warnOnce(
    `${where} was called while a request was handled: a limiter that is made for each request begins to count anew each time, and so limits ` +
      `nothing. Make it once, outside of handlers, and use it in them`,
    'limiter made per request',
  )
}

/** A preflight is counted, although nobody has chosen to count preflights. */
function warnOfPreflight(): void {
  warnOnce(
    `a limiter counted a CORS preflight, and a browser reports a refused preflight as a network error. Run the CORS middleware before the limiter, ` +
      `so that it answers preflights first; or set preflights: 'pass', after which whatever runs for OPTIONS behind the limiter is not limited`,
    'preflight that is counted',
  )
}
