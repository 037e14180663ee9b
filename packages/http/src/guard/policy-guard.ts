import type { MaybePromise, Peeked } from '@sluice/core'
import { DelayQueue } from '../lifecycle/delay-queue.ts'
import { LoadShedder } from '../limits/shedder.ts'
import type { PolicyGuardOptions } from '../options/options.ts'
import type { RequestContext } from '../request/context.ts'
import type { Passage } from '../request/passage.ts'
import type { Asking } from '../stages/request-checks.ts'
import { type GuardSetup, type PolicyGuardPlace, setUpGuard } from '../stages/setup.ts'
import { Stages } from '../stages/stages.ts'
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

/** Makes a guard. @throws SluiceError when an option is unknown, missing or out of range */
export function createPolicyGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): OpenPolicyGuard<Native, Handler> {
  const setup = setUpGuard(options, place)
  const { shed } = setup
  const { inherited } = place
  const delayQueue = inherited?.delayQueue ?? new DelayQueue(setup.maxWaiting)
  const shedder = inherited?.shedder ?? (shed === undefined ? undefined : new LoadShedder(shed))
  const stages = new Stages(setup, { delayQueue, shedder })
  // Guards of routes may be made on first use, and then are kept.
  const firstUse = new FirstUse(!place.identifiedByScope)

  function check(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    if (firstUse.isDue) firstUse.see(place.where)
    return stages.check(context)
  }

  const peek = (asking: Asking<Native>) => stages.peek(asking)
  return { setup, hidesOnRedirect: setup.hideOnRedirect, delayQueue, shedder, check, peek }
}
