import { andThen, type Decision, type Limiter, type MaybePromise, notify } from '@sluice/core'
import { formatRetryAfter } from '@sluice/headers'
import type { Exchange } from './guard.ts'
import type { GuardOptions } from './guard-options.ts'
import { type GuardPlace, type GuardSetup, setUpGuard } from './guard-setup.ts'
import { LeaseKeeper } from './holds/lease-keeper.ts'
import { WaitingRoom } from './holds/waiting-room.ts'
import type { HttpRequest } from './http-request.ts'
import { deniedWithoutKey } from './keys/missing-key.ts'
import { LoadShedder } from './limits/load-shedder.ts'
import { type Passage, untouched } from './passage.ts'
import { RequestChecks } from './request-checks.ts'
import type { ResponseField } from './responses/http-response.ts'
import { refusalBody, refusalCause, refusalStatus, turnedAway } from './responses/refusal.ts'
import { type FieldOptions, responseFields } from './responses/response-fields.ts'
import type { Rule, RuleCheck } from './rule.ts'
import { type TakeOverSetup, takenOrAnswered, takenUnlimited } from './take-over.ts'

/** Where a guard of one list of policies stands. */
export interface PolicyGuardPlace<Native> extends GuardPlace {
  /** Rules that are decided with those of the options: what they are added to. */
  readonly addedTo?: readonly Rule<Native>[] | undefined
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
  check(exchange: Exchange<Native>): MaybePromise<Passage<Handler>>
}

/**
 * Makes a guard of one list of policies.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createPolicyGuard<Native extends object, Handler>(
  options: GuardOptions<Native, Handler>,
  place: PolicyGuardPlace<Native>,
): PolicyGuard<Native, Handler> {
  const setup = setUpGuard(options, place, place.addedTo)
  const { limiter } = setup
  const { admission, skip, message, handler, shed } = options
  const requestChecks = new RequestChecks(setup)
  const waitingRoom = place.waitingRoom ?? new WaitingRoom(setup.maxWaiting)
  const shedder = place.shedder ?? (shed === undefined ? undefined : new LoadShedder(shed))
  const limit = shedder ? (exchange: Exchange<Native>) => shedOr(shedder, exchange) : count
  const leases = new LeaseKeeper(
    limiter,
    setup.rules.map(({ policy }) => policy),
  )

  const takeOver: TakeOverSetup<Native, Handler> | undefined = admission && {
    ...{ admission, limiter, leases },
    answer: (exchange, { decision, checks }) => answer(exchange, decision, checks),
    limitFields(exchange, { decision, checks }) {
      if (decision.outcomes.length === 0) return []
      const fields = responseFields(exchange.native)
      fields.ledger.add({ decision, checks, dialects: setup.dialects })
      return fields.render(exchange.response, { ...fieldOptions(decision), ...noRefusal })
    },
  }

  function check(exchange: Exchange<Native>): MaybePromise<Passage<Handler>> {
    if (isPreflight(exchange.request)) return untouched
    if (!skip) return limit(exchange)
    return andThen(skip(exchange.native), (skipped) =>
      skipped ? leave(exchange) : limit(exchange),
    )
  }

  /** What is shed is not counted. */
  function shedOr(
    shedder: LoadShedder<Native>,
    exchange: Exchange<Native>,
  ): MaybePromise<Passage<Handler>> {
    return andThen(shedder.refuses(exchange.native, setup.report), (isRefused) => {
      if (!isRefused) return count(exchange)
      notify(options.onDecision, { decision: shedder.refusal, checks: [] })
      return answer(exchange, shedder.refusal, [])
    })
  }

  function count(exchange: Exchange<Native>): MaybePromise<Passage<Handler>> {
    return andThen(requestChecks.of(exchange), (checks) => {
      if (checks === 'deny') return answer(exchange, deniedWithoutKey, [])
      if (checks.length === 0) return leave(exchange)
      return andThen(limiter.decide(checks), (decision) =>
        takeOver
          ? takenOrAnswered(exchange, { decision, checks }, takeOver)
          : answer(exchange, decision, checks),
      )
    })
  }

  function leave(exchange: Exchange<Native>): MaybePromise<Passage<Handler>> {
    return admission ? takenUnlimited(exchange, admission, untouched) : untouched
  }

  function answer(
    exchange: Exchange<Native>,
    decision: Decision,
    checks: readonly RuleCheck<Native>[],
  ): MaybePromise<Passage<Handler>> {
    const { native, response } = exchange
    if (decision.source === 'open') return { ...untouched, decision }
    if (decision.delayMs > 0 && waitingRoom.isFull) return turnAway(exchange, decision)
    const fields = responseFields(native)
    fields.ledger.add({ decision, checks, dialects: setup.dialects })
    if (setup.hideOnRedirect) fields.hideOnRedirect = true
    if (decision.allowed) return admit(decision, fields.render(response, fieldOptions(decision)))

    const cause = refusalCause(decision, checks)
    const status = refusalStatus(cause, setup.statusCode)
    const violated = fields.ledger.violated()
    const body = handler
      ? undefined
      : refusalBody(message, { native, decision, cause, status, violated })
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

  function fieldOptions(decision: Decision): FieldOptions {
    return {
      rejected: !decision.allowed,
      retryAfter: decision.allowed ? undefined : retryAfter(decision, setup.retryJitter),
      nowMs: Date.now(),
      exposeHeaders: setup.exposeHeaders,
      githubExtras: setup.githubExtras,
    }
  }

  /** No queue stands beside leases, so there is one thing to hold at most. */
  function admit(decision: Decision, fields: readonly ResponseField[]): Passage<Handler> {
    const { delayMs } = decision
    if (delayMs === 0) {
      return { decision, verdict: { action: 'pass', fields }, hold: leases.keep(decision) }
    }
    const waiter = waitingRoom.seat(delayMs)
    return { decision, verdict: { action: 'delay', fields, turn: waiter.turn }, hold: waiter }
  }

  /** A refusal is never charged. */
  function turnAway(
    exchange: Exchange<Native>,
    decision: Decision,
  ): MaybePromise<Passage<Handler>> {
    void limiter.refund(decision)
    return answer(exchange, turnedAway(decision), [])
  }

  return { setup, limiter, waitingRoom, shedder, check }
}

const noRefusal = { rejected: false, retryAfter: undefined } as const

/** A browser asks whether it may ask; a refusal would be a network error to it. */
function isPreflight(request: HttpRequest): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.header('origin') !== undefined &&
    request.header('access-control-request-method') !== undefined
  )
}

/** Jitter only ever adds: whoever waits longer than needed is let in. */
function retryAfter({ retryAfterMs }: Decision, retryJitter: number): string | undefined {
  const jitterMs = retryJitter > 0 ? Math.random() * retryJitter * retryAfterMs : 0
  return formatRetryAfter(retryAfterMs, jitterMs)
}
