import { DecisionTiming, type MaybePromise, type Peeked } from '@sluice/core'
import { DelayQueue } from '../lifecycle/delay-queue.ts'
import { LoadShedder } from '../limits/shedder.ts'
import type { PolicyGuardOptions } from '../options/options.ts'
import type { RequestContext } from '../request/context.ts'
import { type Passage, passWithoutFields } from '../request/passage.ts'
import { admitOrRespond, admitUnlimited } from '../stages/admit.ts'
import { peekAtRequest } from '../stages/peek-at-request.ts'
import { passPreflights, warnOfPreflights } from '../stages/preflights.ts'
import { type Asking, RequestChecks } from '../stages/request-checks.ts'
import { Responder } from '../stages/responder.ts'
import { type GuardSetup, type PolicyGuardPlace, setUpGuard } from '../stages/setup.ts'
import {
  type Ask,
  askLimiter,
  askLists,
  askOnce,
  type DecideStage,
  findChecks,
  type RespondStage,
  type Stage,
  shedSome,
  skipSome,
  timed,
} from '../stages/stages.ts'
import { FirstUse } from './first-use.ts'

/** Decides one list of policies for every request that it is given. */
export interface PolicyGuard<Native extends object, Handler> {
  /** Tells whether redirects may have to lose their headers again. */
  readonly hidesOnRedirect: boolean
  /** @throws or rejects with the errors of users' functions */
  check(context: RequestContext<Native>): MaybePromise<Passage<Handler>>
  /** Answers what a request would get, and takes nothing. */
  peek(asking: Asking<Native>): MaybePromise<Peeked>
}

/** A guard of one list of policies, with the parts that guards of routes share with it. */
export interface OpenPolicyGuard<Native extends object, Handler>
  extends PolicyGuard<Native, Handler> {
  readonly setup: GuardSetup<Native>
  readonly delayQueue: DelayQueue
  readonly shedder: LoadShedder<Native> | undefined
}

/**
 * Makes a guard of one list of policies.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createPolicyGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): OpenPolicyGuard<Native, Handler> {
  const setup = setUpGuard(options, place)
  const { shed } = options
  const { inherited } = place
  const delayQueue = inherited?.delayQueue ?? new DelayQueue(setup.maxWaiting)
  const shedder = inherited?.shedder ?? (shed === undefined ? undefined : new LoadShedder(shed))
  const requestChecks = new RequestChecks(setup)
  const stages = firstStage(options, { setup, delayQueue, shedder, requestChecks })
  // Guards of routes may be made on first use, and then are kept.
  const firstUse = new FirstUse(!place.identifiedByScope)

  function check(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    if (firstUse.isDue) firstUse.see(place.where)
    return stages(context)
  }

  const { limiter, lists } = setup
  const counting = { skip: options.skip, lists, requestChecks, limiter }
  const peek = (asking: Asking<Native>) => peekAtRequest(counting, asking)
  return { setup, hidesOnRedirect: setup.hideOnRedirect, delayQueue, shedder, check, peek }
}

interface Parts<Native extends object>
  extends Pick<OpenPolicyGuard<Native, unknown>, 'setup' | 'delayQueue' | 'shedder'> {
  readonly requestChecks: RequestChecks<Native>
}

/**
 * Puts the stages of a guard together, from the last one to the first: those that its options ask
 * for.
 */
function firstStage<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  { setup, delayQueue, shedder, requestChecks }: Parts<Native>,
): Stage<Native, Handler> {
  const { limiter, lists, observation, freeRetries, report, preflights } = setup
  const { admission, skip } = options
  const responder = new Responder(setup, options, delayQueue)

  const forbid: Stage<Native, Handler> = (context) => responder.forbid(context)
  const passUncounted: Stage<Native, Handler> = admission
    ? (context) => admitUnlimited(context, admission, passWithoutFields)
    : () => passWithoutFields
  const passAllowed = observation.skipping('allow', passUncounted)
  const respondHere: RespondStage<Native, Handler> = (decided) => responder.respond(decided)
  const respond: RespondStage<Native, Handler> = admission
    ? (decided) => admitOrRespond(decided, { admission, limiter, responder })
    : respondHere

  const untimed: Ask<Native, Handler> = freeRetries ? askOnce(freeRetries) : askLimiter(limiter)
  // A decision with free retries is several calls of the store: it has a timing of its own.
  const begin = freeRetries ? () => new DecisionTiming() : () => observation.time()
  const ask = observation.isObserved ? timed(untimed, begin) : untimed
  let decide: DecideStage<Native, Handler> = (context, checks) => ask(context, checks, respond)
  if (preflights === undefined) decide = warnOfPreflights(decide)
  const checkStage = findChecks(requestChecks, {
    forbid,
    passUncounted: passAllowed,
    passKeyless: observation.skipping('no-key', passUncounted),
    respond: respondHere,
    next: decide,
  })
  let stage: Stage<Native, Handler> = checkStage
  if (shedder) stage = shedSome(shedder, { report, respond: respondHere }, stage)
  if (preflights === 'pass') {
    const pass = observation.skipping('preflight', () => passWithoutFields)
    const around = { requestChecks, forbid, respond: respondHere, pass }
    stage = passPreflights(setup, { ...around, next: stage })
  }
  if (lists)
    stage = askLists(lists, { forbid, passUncounted: passAllowed, checkStage, next: stage })
  return skip ? skipSome(skip, observation.skipping('skip', passUncounted), stage) : stage
}
