import {
  andThen,
  DecisionTiming,
  isPromise,
  type MaybePromise,
  type Peeked,
  warnOnce,
} from '@sluice/core'
import type { Access } from '../access/lists.ts'
import { deniedWithoutKey } from '../keys/missing-key.ts'
import type { Found } from '../lifecycle/account.ts'
import { Decided } from '../lifecycle/decided.ts'
import type { DelayQueue } from '../lifecycle/delay-queue.ts'
import type { LoadShedder } from '../limits/shedder.ts'
import type { PolicyCheck } from '../options/bound-policy.ts'
import { withoutStrike } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { type Passage, passWithoutFields } from '../request/passage.ts'
import { isPreflight } from '../request/request.ts'
import { Admitting } from './admit.ts'
import { type Asking, type FoundChecks, RequestChecks } from './request-checks.ts'
import { Responder } from './responder.ts'
import type { GuardSetup } from './setup.ts'

/** Decides on one request. */
export type Stage<Native extends object, Handler> = (
  context: RequestContext<Native>,
) => MaybePromise<Passage<Handler>>

interface SharedParts<Native> {
  readonly delayQueue: DelayQueue
  readonly shedder: LoadShedder<Native> | undefined
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

/**
 * The stages of a guard, in this order: skip, lists, preflights that pass, shed, checks, decide,
 * respond. Each one answers a request, or hands it to the next.
 */
export class Stages<Native extends object, Handler> {
  readonly #setup: GuardSetup<Native, Handler>
  readonly #shedder: LoadShedder<Native> | undefined
  readonly #requestChecks: RequestChecks<Native>
  readonly #responder: Responder<Native, Handler>
  readonly #admitting: Admitting<Native, Handler> | undefined
  /** Let a request pass uncounted, by the reason. */
  readonly #pass: Readonly<
    Record<'skip' | 'allow' | 'no-key' | 'preflight', Stage<Native, Handler>>
  >

  constructor(setup: GuardSetup<Native, Handler>, { delayQueue, shedder }: SharedParts<Native>) {
    const { admission, limiter, observation } = setup
    this.#setup = setup
    this.#shedder = shedder
    this.#requestChecks = new RequestChecks(setup)
    this.#responder = new Responder(setup, delayQueue)
    const admitting = admission && new Admitting(admission, limiter, this.#responder)
    this.#admitting = admitting
    const uncounted: Stage<Native, Handler> = admitting
      ? (context) => admitting.admitUnlimited(context)
      : () => passWithoutFields
    this.#pass = {
      skip: observation.skipping('skip', uncounted),
      allow: observation.skipping('allow', uncounted),
      'no-key': observation.skipping('no-key', uncounted),
      preflight: observation.skipping('preflight', () => passWithoutFields),
    }
  }

  /** @throws or rejects with the errors of users' functions */
  check(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { skip } = this.#setup
    if (!skip) return this.#askLists(context)
    return andThen(skip(context.native), (isSkipped) =>
      isSkipped ? this.#pass.skip(context) : this.#askLists(context),
    )
  }

  /** Answers what a request would get by its own key, limit and cost, and takes nothing. */
  peek(asking: Asking<Native>): MaybePromise<Peeked> {
    const { lists, limiter, skip } = this.#setup
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

  /** Asks the lists about the address: it costs no key. An allowed request is not shed either. */
  #askLists(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { lists } = this.#setup
    const access = lists ? lists.ofAddress(context.request) : 'unlisted'
    if (access === 'unlisted') return this.#passPreflights(context)
    if (access === 'block') return this.#responder.forbid(context)
    return lists?.blockKeys ? this.#findChecks(context, access) : this.#pass.allow(context)
  }

  /** Lets preflights pass without limits. Blocked keys are refused, by a list or by a penalty. */
  #passPreflights(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const { preflights, penalty, lists, limiter } = this.#setup
    if (preflights !== 'pass' || !isPreflight(context.request)) return this.#shed(context)
    if (!penalty && !lists?.blockKeys) return this.#pass.preflight(context)
    return andThen(this.#requestChecks.find(context), (found) => {
      if (found === 'block') return this.#responder.forbid(context)
      const check =
        typeof found === 'string' ? undefined : found.find(({ bound }) => bound === penalty)
      if (!check) return this.#pass.preflight(context)
      const checks = [withoutStrike(check)]
      return andThen(limiter.decide(checks, context.native), (decision) =>
        decision.allowed
          ? this.#pass.preflight(context)
          : this.#respond({ context, decision, checks }),
      )
    })
  }

  /** Refuses requests of the less important classes under pressure. They are not counted. */
  #shed(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    const shedder = this.#shedder
    if (!shedder) return this.#findChecks(context)
    return andThen(shedder.refuses(context.native, this.#setup.report), (isRefused) => {
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
    if (found === 'allow') return this.#pass.allow(context)
    if (found === 'deny') {
      return this.#respond({ context, decision: deniedWithoutKey, checks: [] })
    }
    return found.length === 0 ? this.#pass['no-key'](context) : this.#decide(context, found)
  }

  #decide(
    context: RequestContext<Native>,
    checks: readonly PolicyCheck<Native>[],
  ): MaybePromise<Passage<Handler>> {
    const { decide, preflights } = this.#setup
    if (preflights === undefined && isPreflight(context.request)) warnOfPreflight()
    const timing = this.#begin()
    const found = decide(context, checks)
    if (!isPromise(found)) return this.#answer(found, timing)
    if (timing) timing.isImmediate = false
    return found.then((known) => this.#answer(known, timing))
  }

  /** Several calls of the store have a timing of their own. */
  #begin(): DecisionTiming | undefined {
    const { isSeveralCalls, observation } = this.#setup
    if (!observation.isObserved) return undefined
    const timing = isSeveralCalls ? new DecisionTiming() : observation.time()
    timing.isImmediate = true
    return timing
  }

  #answer(
    found: Found<Native>,
    timing: DecisionTiming | undefined,
  ): MaybePromise<Passage<Handler>> {
    timing?.end()
    const decided = new Decided(this.#setup, found, timing)
    if (!this.#admitting) return this.#responder.respond(decided)
    return this.#admitting.admitOrRespond(decided)
  }

  /** Answers a request that no admission can take. */
  #respond(found: Found<Native>): MaybePromise<Passage<Handler>> {
    return this.#responder.respond(new Decided(this.#setup, found))
  }
}

/** A preflight is counted, although nobody has chosen to count preflights. */
function warnOfPreflight(): void {
  warnOnce(
    `a limiter counted a CORS preflight, and a browser reports a refused preflight as a network error. Run the CORS middleware before the limiter, ` +
      `so that it answers preflights first; or set preflights: 'pass', after which whatever runs for OPTIONS behind the limiter is not limited`,
    'preflight that is counted',
  )
}
