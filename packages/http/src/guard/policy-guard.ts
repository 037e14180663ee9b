import {
  andThen,
  type Decision,
  divideChecks,
  type Limiter,
  type MaybePromise,
  notifyDecided,
} from '@sluice/core'
import type { Access } from '../access/lists.ts'
import type { RequestContext } from '../adapter/context.ts'
import type { HttpRequest } from '../adapter/request.ts'
import type { ResponseField } from '../adapter/response.ts'
import { type TakeOverSetup, takenOrAnswered, takenUnlimited } from '../admission/admit.ts'
import { deniedWithoutKey } from '../keys/missing-key.ts'
import {
  type Decided,
  giveBack,
  hasUnits,
  mayRefund,
  RequestAccount,
} from '../lifecycle/account.ts'
import { ChargeableDecision } from '../lifecycle/decision.ts'
import { WaitingRoom } from '../lifecycle/delay-queue.ts'
import { allHolds, type Hold } from '../lifecycle/hold.ts'
import { LeaseKeeper } from '../lifecycle/lease-renewer.ts'
import { LoadShedder } from '../limits/shedder.ts'
import { type FieldOptions, responseFields, retryAfter } from '../responses/headers.ts'
import {
  blocked,
  forbidden,
  refusalBody,
  refusalCause,
  refusalStatus,
  turnedAway,
} from '../responses/refusal.ts'
import { matchedRoute } from '../routes/scope.ts'
import { isOnTrial, type RuleCheck } from './bound-policy.ts'
import { RequestChecks } from './checks.ts'
import { FirstUse } from './first-use.ts'
import type { PolicyGuardOptions } from './options.ts'
import { type Passage, type RequestDecision, untouched } from './passage.ts'
import { strikeDue } from './penalty.ts'
import { isPreflight, PreflightWatch } from './preflight-watch.ts'
import { type GuardPlace, type GuardSetup, type RulesAround, setUpGuard } from './setup.ts'

/** Where a guard of one list of policies stands. */
export interface PolicyGuardPlace<Native> extends GuardPlace, RulesAround<Native> {
  /** Where its requests wait. @default a room of its own */
  readonly waitingRoom?: WaitingRoom | undefined
  /** Refuses requests when there is too much to do. @default one of its own, if the options say so */
  readonly shedder?: LoadShedder<Native> | undefined
}

/** Decides one list of policies for every request that it is given. */
export interface PolicyGuard<Native extends object, Handler> {
  readonly setup: GuardSetup<Native>
  readonly limiter: Limiter
  readonly waitingRoom: WaitingRoom
  readonly shedder: LoadShedder<Native> | undefined
  /** @throws or rejects with what a function of the user throws */
  check(context: RequestContext<Native>): MaybePromise<Passage<Handler>>
}

/**
 * Makes a guard of one list of policies.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createPolicyGuard<Native extends object, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): PolicyGuard<Native, Handler> {
  const setup = setUpGuard(options, place, place)
  const { limiter, lists } = setup
  const { admission, skip, message, handler, shed } = options
  const requestChecks = new RequestChecks(setup)
  const waitingRoom = place.waitingRoom ?? new WaitingRoom(setup.maxWaiting)
  const shedder = place.shedder ?? (shed === undefined ? undefined : new LoadShedder(shed))
  const limit = shedder ? (context: RequestContext<Native>) => shedOr(shedder, context) : count
  const leases = new LeaseKeeper(
    limiter,
    setup.rules.map(({ policy }) => policy),
  )
  const windows = setup.rules.map(({ policy }) => policy.windowMs)
  const preflightWatch = new PreflightWatch<Native>(windows, chargeUnasked)
  const refunds = setup.rules.some(({ settlement }) => settlement !== undefined)
  const hasTrials = setup.rules.some(isOnTrial)
  const isObserved = options.onDecision !== undefined || options.onShadow !== undefined
  const takeOver: TakeOverSetup<Native, Handler> | undefined = admission && {
    admission,
    limiter,
    answer,
    observe,
    hold(charged) {
      const hold = heldBy(charged.decision, accountOf(charged))
      if (hold) charged.context.settleAtEnd(hold)
    },
    tell(decided) {
      const { context, checks } = decided
      const decision = new ChargeableDecision(setup, decided, undefined)
      if (decision.outcomes.length === 0) return { decision, fields: [] }
      const fields = responseFields(context.native)
      fields.ledger.add({ decision, checks: enforced(checks), dialects: setup.dialects })
      const options = { ...fieldOptions(decision), ...noRefusal }
      return { decision, fields: fields.render(context.response, options) }
    },
  }

  // Guards of routes may be made on first use, and then are kept.
  const firstUse = new FirstUse(!place.identifiedByScope)

  function check(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    if (firstUse.isDue) firstUse.see(place.where)
    if (isPreflight(context.request) && !countsPreflight(context.request)) {
      if (setup.preflights === 'pass') return untouched
      return { ...untouched, hold: preflightWatch.hold(context) }
    }
    if (!skip) return enter(context)
    return andThen(skip(context.native), (skipped) => (skipped ? leave(context) : enter(context)))
  }

  function countsPreflight(request: HttpRequest): boolean {
    const { isForAllMethods = false } = request
    if (setup.preflights !== undefined) return setup.preflights === 'count'
    return isForAllMethods || preflightWatch.isSuspect(request)
  }

  /** Takes what a request costs that was let through as a preflight, and was none. */
  function chargeUnasked(context: RequestContext<Native>): MaybePromise<unknown> {
    return andThen(skip?.(context.native), (skipped) => {
      const access = lists?.ofAddress(context.request)
      if (skipped || (access === 'allow' && !lists?.blockKeys)) return undefined
      return andThen(requestChecks.of(context, access), (checks) => {
        const due =
          typeof checks === 'string' ? [] : checks.filter(({ policy }) => hasUnits(policy))
        return due.length > 0 ? limiter.chargeChecks(due) : undefined
      })
    })
  }

  /** What is shed is not counted. */
  function shedOr(
    shedder: LoadShedder<Native>,
    context: RequestContext<Native>,
  ): MaybePromise<Passage<Handler>> {
    return andThen(shedder.refuses(context.native, setup.report), (isRefused) => {
      if (!isRefused) return count(context)
      return answered({ context, decision: shedder.refusal, checks: [] })
    })
  }

  function count(context: RequestContext<Native>, access?: Access): MaybePromise<Passage<Handler>> {
    return andThen(requestChecks.of(context, access), (checks) => {
      if (checks === 'block') return forbid(context)
      if (checks === 'deny') return answered({ context, decision: deniedWithoutKey, checks: [] })
      if (checks.length === 0) return leave(context)
      if (setup.replays) return andThen(setup.replays.decide(context, checks), settle)
      return andThen(limiter.decide(checks, context.native), (decision) =>
        settle({ context, decision, checks }),
      )
    })
  }

  /** By address first, which costs no key. Who is allowed is not shed either. */
  function enter(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    if (!lists) return limit(context)
    const access = lists.ofAddress(context.request)
    if (access === 'block') return forbid(context)
    if (access === 'unlisted') return limit(context)
    return lists.blockKeys ? count(context, access) : leave(context)
  }

  function leave(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    return admission ? takenUnlimited(context, admission, untouched) : untouched
  }

  function settle(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    if (takeOver) return takenOrAnswered(decided, takeOver)
    return isTurnedAway(decided) ? turnAway(decided) : answered(decided)
  }

  function forbid(context: RequestContext<Native>): MaybePromise<Passage<Handler>> {
    observe({ context, decision: blocked, checks: [] })
    return forbidden(options, context.native)
  }

  function answered(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    observe(decided)
    return answer(decided)
  }

  function observe({ context, decision, checks }: Decided<Native>): void {
    if (!isObserved) return
    const { native, request } = context
    const route = matchedRoute(request)
    notifyDecided(options, { decision, checks, request: native, route })
  }

  function isTurnedAway({ decision }: Decided<Native>): boolean {
    return decision.delayMs > 0 && waitingRoom.isFull
  }

  function answer(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    const { context, checks } = decided
    const { native, response } = context
    if (isTurnedAway(decided)) return turnAway(decided)
    const account = accountOf(decided)
    const decision = new ChargeableDecision(setup, decided, account)
    if (decision.source === 'open') return { ...untouched, decision }
    const told = enforced(checks)
    if (told.length === 0 && decision.allowed)
      return { ...untouched, decision, hold: heldBy(decision, account) }
    const fields = responseFields(native)
    fields.ledger.add({ decision, checks: told, dialects: setup.dialects })
    if (setup.hideOnRedirect) fields.hideOnRedirect = true
    if (decision.allowed)
      return admit({ decision, account }, fields.render(response, fieldOptions(decision)))

    const cause = refusalCause(decision, told)
    if (cause === 'quota' && setup.penalty) {
      const strike = strikeDue(decision, told, setup.penalty)
      if (strike) limiter.strike(strike)
    }
    const status = refusalStatus(cause, setup.statusCode)
    const violated = fields.ledger.violated()
    const penalties = fields.ledger.violatedPenalties()
    const refusal = { native, decision, cause, status, violated, penalties }
    const body = handler ? undefined : refusalBody(message, refusal)
    return andThen(body, (known) => ({
      decision,
      verdict: {
        action: 'reject',
        decision,
        status,
        fields: [...fields.render(response, fieldOptions(decision)), ['Cache-Control', 'no-store']],
        body: known,
        handler,
      },
      hold: undefined,
    }))
  }

  function accountOf(decided: Decided<Native>): RequestAccount<Native> | undefined {
    return refunds && mayRefund(decided) ? new RequestAccount(setup, decided) : undefined
  }

  function enforced(checks: readonly RuleCheck<Native>[]): readonly RuleCheck<Native>[] {
    return hasTrials ? divideChecks(checks).enforced : checks
  }

  function fieldOptions(decision: Decision): FieldOptions {
    return {
      rejected: !decision.allowed,
      retryAfter: decision.allowed ? undefined : retryAfter(decision, setup.retryJitter),
      nowMs: Date.now(),
      exposeHeaders: setup.exposeHeaders,
      githubExtras: setup.githubExtras,
    }
  }

  function admit(
    {
      decision,
      account,
    }: { decision: RequestDecision; account: RequestAccount<Native> | undefined },
    fields: readonly ResponseField[],
  ): Passage<Handler> {
    const { delayMs } = decision
    if (delayMs === 0) {
      return { decision, verdict: { action: 'pass', fields }, hold: heldBy(decision, account) }
    }
    // No queue stands beside leases, so there are none to keep.
    const waiter = waitingRoom.seat(delayMs)
    const verdict = { action: 'delay', fields, turn: waiter.turn } as const
    return { decision, verdict, hold: allHolds(waiter, account?.held()) }
  }

  function heldBy(
    decision: Decision,
    account: RequestAccount<Native> | undefined,
  ): Hold | undefined {
    const lease = leases.keep(decision)
    return account ? allHolds(lease, account.held()) : lease
  }

  /** A refusal is never charged. */
  function turnAway(decided: Decided<Native>): MaybePromise<Passage<Handler>> {
    giveBack(decided, limiter)
    const refused = { ...decided, decision: turnedAway(decided.decision) }
    // An admission has told already what was decided.
    if (!takeOver) observe(refused)
    return answer({ ...refused, checks: [] })
  }

  return { setup, limiter, waitingRoom, shedder, check }
}

const noRefusal = { rejected: false, retryAfter: undefined } as const
