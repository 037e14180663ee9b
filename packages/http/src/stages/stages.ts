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
import type { Found } from '../lifecycle/found.ts'
import { LoadShedder } from '../limits/shedder.ts'
import type { PolicyCheck } from '../options/bound-policy.ts'
import type { PolicyGuardOptions } from '../options/options.ts'
import { withoutStrike } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { type Passage, passWithoutFields, refuseUnasked } from '../request/passage.ts'
import { isPreflight } from '../request/request.ts'
import { Admitting } from './admit.ts'
import { type Asking, type FoundChecks, RequestChecks } from './request-checks.ts'
import { Responder } from './responder.ts'
import { type GuardSetup, type PolicyGuardPlace, setUpGuard } from './setup.ts'

/** Decides one list of policies for every request that it is given. */
export interface PolicyGuard<Native extends object, Handler> {
  /** Tells whether redirects may have to lose their headers again. */
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

/**
 * The stages of a guard, in this order: skip, lists, preflights that pass, shed, checks, decide,
 * respond. Each one answers a request, or hands it to the next.
 */
export class Stages<Native extends object, Handler> implements PolicyGuard<Native, Handler> {
  readonly setup: GuardSetup<Native, Handler>
  readonly delayQueue: DelayQueue
  readonly shedder: LoadShedder<Native> | undefined
  readonly #requestChecks: RequestChecks<Native>
  readonly #responder: Responder<Native, Handler>
  readonly #admitting: Admitting<Native, Handler> | undefined
  /** Only until the code that made it has run: a handler must not make a guard for one request. */
  #isNew: boolean

  /** @throws SluiceError when an option is unknown, missing or out of range */
  constructor(options: PolicyGuardOptions<Native, Handler>, place: PolicyGuardPlace<Native>) {
    const { inherited, identifiedByScope = false } = place
    const setup = setUpGuard(options, place)
    const { admission, limiter, maxWaiting, shed } = setup
    this.setup = setup
    this.delayQueue = inherited?.delayQueue ?? new DelayQueue(maxWaiting)
    this.shedder = inherited?.shedder ?? (shed === undefined ? shed : new LoadShedder(shed))
    this.#requestChecks = new RequestChecks(setup)
    this.#responder = new Responder(setup, this.delayQueue)
    this.#admitting = admission && new Admitting(admission, limiter, this.#responder)
    // Guards of routes may be made on first use, and then are kept.
    this.#isNew = !identifiedByScope
    void Promise.resolve().then(() => {
      this.#isNew = false
    })
  }

  get hidesOnRedirect(): boolean {
    return this.setup.hideOnRedirect
  }

  check = (context: RequestContext<Native>): MaybePromise<Passage<Handler>> => {
    if (this.#isNew) {
      this.#isNew = false
      noteUseAtOnce(this.setup.where)
    }
    const { skip } = this.setup
    if (!skip) return this.#askLists(context)
    return andThen(skip(context.native), (isSkipped) =>
      isSkipped ? this.#pass(context, 'skip') : this.#askLists(context),
    )
  }

  peek(asking: Asking<Native>): MaybePromise<Peeked> {
    const { lists, limiter, skip } = this.setup
    return andThen(skip?.(asking.native), (isSkipped) => {
      const access = lists?.ofAddress(asking.request)
      if (isSkipped || (access === 'allow' && !lists?.blockKeys)) return passes
      if (access === 'block') return refused
      return andThen(this.#requestChecks.find(asking, access), (found) => {
        if (found === 'block' || found === 'deny') return refused
        return found === 'allow' || found.length === 0 ? passes : limiter.peekChecks(found)
      })
    })
  }

  /** Lets a request pass uncounted. */
  #pass(
    context: RequestContext<Native>,
    reason: SkipEvent['reason'],
  ): MaybePromise<Passage<Handler>> {
    this.setup.observation.notifySkip(context, reason)
    if (!this.#admitting || reason === 'preflight') return passWithoutFields
    return this.#admitting.admitUnlimited(context)
  }

  /** Asks the lists about the address: it costs no key. An allowed request is not shed either. */
  #askLists(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { lists } = this.setup
    const access = lists ? lists.ofAddress(context.request) : 'unlisted'
    if (access === 'unlisted') return this.#passPreflights(context)
    if (access === 'block') return this.#responder.forbid(context)
    return lists?.blockKeys ? this.#findChecks(context, access) : this.#pass(context, 'allow')
  }

  /** Lets preflights pass without limits. Blocked keys are refused, by a list or by a penalty. */
  #passPreflights(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { preflights, penalty, lists, limiter } = this.setup
    if (preflights !== 'pass' || !isPreflight(context.request)) return this.#shed(context)
    if (!penalty && !lists?.blockKeys) return this.#pass(context, 'preflight')
    return andThen(this.#requestChecks.find(context), (found) => {
      if (found === 'block') return this.#responder.forbid(context)
      const check =
        typeof found === 'string' ? undefined : found.find(({ bound }) => bound === penalty)
      if (!check) return this.#pass(context, 'preflight')
      const checks = [withoutStrike(check)]
      return andThen(limiter.decide(checks, context.native), (decision) =>
        decision.allowed
          ? this.#pass(context, 'preflight')
          : this.#respond({ context, decision, checks }),
      )
    })
  }

  /** Refuses requests of the less important classes under pressure. They are not counted. */
  #shed(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { shedder } = this
    if (!shedder) return this.#findChecks(context)
    return andThen(shedder.refuses(context.native, this.setup.report), (isRefused) => {
      if (!isRefused) return this.#findChecks(context)
      return this.#respond({ context, decision: shedder.refusal, checks: [] })
    })
  }

  #findChecks(context: RequestContext<Native>, access?: Access): MaybePromise<Passage<Handler>> {
    const found = this.#requestChecks.find(context, access)
    return isPromise(found)
      ? found.then((known) => this.#goOn(context, known))
      : this.#goOn(context, found)
  }

  #goOn(
    context: RequestContext<Native>,
    found: FoundChecks<Native>,
  ): MaybePromise<Passage<Handler>> {
    if (found === 'block') return this.#responder.forbid(context)
    if (found === 'allow') return this.#pass(context, 'allow')
    if (found === 'deny') return this.#respond({ context, decision: refused, checks: [] })
    return found.length === 0 ? this.#pass(context, 'no-key') : this.#decide(context, found)
  }

  #decide(
    context: RequestContext<Native>,
    checks: readonly PolicyCheck<Native>[],
  ): MaybePromise<Passage<Handler>> {
    const { decide, preflights } = this.setup
    if (preflights === undefined && isPreflight(context.request)) warnOfPreflight()
    const timing = this.#begin()
    const found = decide(context, checks, timing)
    if (!isPromise(found)) return this.#answer(found)
    if (timing) timing.isImmediate = false
    return found.then((known) => this.#answer(known))
  }

  /** Several calls of the store have a timing of their own. */
  #begin(): DecisionTiming | undefined {
    const { isSeveralCalls, observation } = this.setup
    if (!observation.isObserved) return undefined
    const timing = isSeveralCalls ? new DecisionTiming() : observation.time()
    timing.isImmediate = true
    return timing
  }

  #answer(found: Found<Native>): MaybePromise<Passage<Handler>> {
    found.timing?.end()
    const decided = new Decided(this.setup, found)
    if (!this.#admitting) return this.#responder.respond(decided)
    return this.#admitting.admitOrRespond(decided)
  }

  /** Answers a request that no admission can take. */
  #respond(found: Found<Native>): MaybePromise<Passage<Handler>> {
    return this.#responder.respond(new Decided(this.setup, found))
  }
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
