import { andThen, type Check, type Decision, type Limiter, type MaybePromise } from '@sluice/core'
import { formatRetryAfter } from '@sluice/headers'
import type { GuardOptions } from './guard-options.ts'
import { setUpGuard } from './guard-setup.ts'
import type { HttpRequest } from './http-request.ts'
import type { HttpResponse, ResponseField } from './http-response.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { deniedWithoutKey } from './missing-key.ts'
import { type Passage, untouched } from './passage.ts'
import { refusalBody, refusalStatus, turnedAway } from './refusal.ts'
import { RequestChecks } from './request-checks.ts'
import { type FieldOptions, responseFields } from './response-fields.ts'
import type { Scope } from './scope.ts'
import { WaitingRoom } from './waiting-room.ts'

/** One request and its response, as an adapter shows them. */
export interface Exchange<Native extends object> {
  /** The framework's request, which users' functions are given. Guards of one response know each other by it. */
  readonly native: Native
  readonly request: HttpRequest
  readonly response: HttpResponse
  /** Where the guard stands; '' for the whole application. */
  readonly scope: Scope
}

/** Limiter + key resolution + headers: an HTTP request in, a passage out. */
export interface Guard<Native extends object, Handler = never> {
  readonly limiter: Limiter
  /** How many requests are held now. */
  readonly waiting: number
  /** Who replies to a request that is refused, in place of the body. */
  readonly handler: Handler | undefined
  /**
   * Decides on a request, and says what is to be done. Synchronous when the store and all functions of the user are.
   * @throws or rejects with what a function of the user throws
   */
  check(exchange: Exchange<Native>): MaybePromise<Passage>
}

export interface GuardPlace {
  /** What the user calls the guard, for messages. */
  readonly where: string
  /** Options of the adapter's own, which the guard leaves alone. */
  readonly adapterFields?: readonly string[]
  /**
   * The scope alone, and not the order in which guards are made, tells its private policies from those of others: for guards that
   * are made on first use, in another order in each process.
   * @default false
   */
  readonly identifiedByScope?: boolean
}

/**
 * Makes a guard.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createGuard<Native extends object, Handler = never>(
  options: GuardOptions<Native, Handler>,
  place: GuardPlace,
): Guard<Native, Handler> {
  const setup = setUpGuard(options, place)
  const { limiter } = setup
  const { skip, message, handler } = options
  const requestChecks = new RequestChecks(setup)
  const waitingRoom = new WaitingRoom(setup.maxWaiting)
  const leases = new LeaseKeeper(limiter)

  function check(exchange: Exchange<Native>): MaybePromise<Passage> {
    if (isPreflight(exchange.request)) return untouched
    if (!skip) return limit(exchange)
    return andThen(skip(exchange.native), (skipped) => (skipped ? untouched : limit(exchange)))
  }

  function limit(exchange: Exchange<Native>): MaybePromise<Passage> {
    return andThen(requestChecks.of(exchange), (checks) => {
      if (checks === 'deny') return answer(exchange, deniedWithoutKey, [])
      if (checks.length === 0) return untouched
      return andThen(limiter.decide(checks), (decision) => answer(exchange, decision, checks))
    })
  }

  function answer(
    exchange: Exchange<Native>,
    decision: Decision,
    checks: readonly Check[],
  ): MaybePromise<Passage> {
    const { native, response, scope } = exchange
    if (decision.source === 'open') return { ...untouched, decision }
    if (decision.delayMs > 0 && waitingRoom.isFull) return turnAway(exchange, decision)
    const fields = responseFields(native)
    fields.ledger.add({ decision, checks, scope, dialects: setup.dialects })
    if (setup.hideOnRedirect) fields.hideOnRedirect = true
    if (decision.allowed) return admit(decision, fields.render(response, fieldOptions(decision)))

    const status = refusalStatus(decision, setup.statusCode)
    const violated = fields.ledger.violated()
    const body = handler ? undefined : refusalBody(message, { native, decision, status, violated })
    return andThen(body, (known) => ({
      decision,
      verdict: {
        action: 'reject',
        decision,
        status,
        fields: [...fields.render(response, fieldOptions(decision)), ['Cache-Control', 'no-store']],
        body: known,
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

  /** Core lets no queue stand beside leases in one limiter, so there is one thing to hold at most. */
  function admit(decision: Decision, fields: readonly ResponseField[]): Passage {
    const { delayMs } = decision
    if (delayMs === 0) {
      return { decision, verdict: { action: 'pass', fields }, hold: leases.keep(decision) }
    }
    const waiter = waitingRoom.seat(delayMs)
    return { decision, verdict: { action: 'delay', fields, turn: waiter.turn }, hold: waiter }
  }

  /** A refusal is never charged. */
  function turnAway(exchange: Exchange<Native>, decision: Decision): MaybePromise<Passage> {
    void limiter.refund(decision)
    return answer(exchange, turnedAway(decision), [])
  }

  return {
    limiter,
    handler,
    check,
    get waiting() {
      return waitingRoom.waiting
    },
  }
}

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
