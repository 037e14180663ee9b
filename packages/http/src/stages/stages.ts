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

/** Decides one list of policies for every request. */
export interface PolicyGuard<Native extends object, Handler> {
  /** True if headers may have to be removed from redirects. */
  readonly hidesOnRedirect: boolean
  /**
   * Decides a request, and returns instructions for the adapter. Synchronous if the store and all
   * user functions are.
   * @throws or rejects with the errors of user functions
   */
  check(context: RequestContext<Native>): MaybePromise<Passage<Handler>>
  /** Returns the decision that a request would get by its key, limit and cost. Takes nothing. */
  peek(asking: Asking<Native>): MaybePromise<Peeked>
}

/** The answer for a request that is blocked by a list or has no key: no wait helps. */
const refused = refuseUnasked('store')

/** The answer for a request that passes uncounted. */
export const passes: Peeked = { ...refused, allowed: true, retryAfterMs: 0 }

/** A guard of one list of policies, with the parts that route guards share with it. */
export interface OpenGuard<Native extends object, Handler> extends PolicyGuard<Native, Handler> {
  readonly setup: GuardSetup<Native, Handler>
  readonly delayQueue: DelayQueue
  readonly shedder: LoadShedder<Native> | undefined
}

/**
 * Creates a guard of one list of policies. Its stages, in this order: skip, lists, preflights that
 * pass, shed, checks, decide, respond. Each stage answers a request or passes it to the next.
 * @throws SluiceError if an option is unknown, missing or out of range
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
  /** Decides with several store calls. */
  const askOften = setup.askReserving ?? (key && freeRetries({ ...retried, key }))
  const decide = askOften ?? askOnce
  /** True until the code that created it has run: a handler must not create a guard per request. */
  let isNew = !place.identifiedByScope
  // Route guards may be created on first use, and are then kept.
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

  /** Checks the address against the lists, without a key. An allowed request is not shed either. */
  function askLists(context: Context): MaybePassage {
    const access = lists ? lists.ofAddress(context.request) : 'unlisted'
    if (access === 'unlisted') return passPreflights(context)
    if (access === 'block') return responder.forbid(context)
    return lists?.blockKeys ? checkAll(context, access) : pass(context, 'allow')
  }

  /** Lets preflights pass without limits. Keys blocked by a list or a penalty are refused. */
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

  /** Refuses requests of less important classes under load, without counting them. */
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

  /** Several store calls have their own timing. */
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

  /** Answers a request that no admission can accept. */
  function respond(found: Found<Native>): MaybePassage {
    return responder.respond(new Decided(setup, found))
  }

  return { setup, hidesOnRedirect: setup.hideOnRedirect, delayQueue, shedder, check, peek }
}

const usedAtOnce = processWide('@sluice/http/used-at-once/1', () => ({ guards: 0 }))

/** One guard may be created just before its first use. A second one indicates a mistake. */
function noteUseAtOnce(where: string): void {
  usedAtOnce.guards += 1
  if (usedAtOnce.guards < 2) return
  warnOnce(
    `${where} was called while handling a request: a limiter created per request starts counting from zero each time, and so limits ` +
      `nothing. Create it once, outside of handlers, and use it in them`,
    'limiter made per request',
  )
}

/** Warns that a preflight was counted, although nobody chose to count preflights. */
function warnOfPreflight(): void {
  warnOnce(
    `a limiter counted a CORS preflight, and browsers report a refused preflight as a network error. Run the CORS middleware before the limiter, ` +
      `so that it answers preflights first; or set preflights: 'pass', but then whatever runs for OPTIONS behind the limiter is not limited`,
    'preflight that is counted',
  )
}
