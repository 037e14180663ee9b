/**
 * The state of one policy for one request, for headers: plain values from any limiter.
 *
 * Any number is safe: a value that no header can contain is clamped or omitted.
 */
export interface PolicyState {
  /**
   * Printable ASCII, not empty; see `policyNameProblem`. Configuration rejects other names. A state
   * with another name is omitted from fields with names, since altering it would invent a policy.
   */
  readonly name: string
  /**
   * Units per window. `Infinity`, or more than 15 digits: unlimited, not shown. 0 (or less) blocks
   * everything.
   */
  readonly limit: number
  /** Length of the window in milliseconds; none for concurrency and for lifetime quotas. */
  readonly windowMs?: number | undefined
  /**
   * Units left after this request. If `undefined` or NaN, they are unknown, and only the policy is
   * shown.
   */
  readonly remaining?: number | undefined
  /**
   * Milliseconds until the effective window of the remaining units ends; none for concurrency and
   * for lifetime quotas.
   */
  readonly resetMs?: number | undefined
  /**
   * Milliseconds until this cost would pass, read only if denied. `Infinity`: never. `undefined`:
   * unknown.
   */
  readonly retryAfterMs?: number | undefined
  /** True if this policy denies the request. @default false */
  readonly denied?: boolean | undefined
  /** Units that this request asked for. @default 1 */
  readonly cost?: number | undefined
  /** Never listed, named or counted; only its Retry-After is sent. @default false */
  readonly hidden?: boolean | undefined
  /** The unit counted, a name from the draft's registry. @default 'requests' */
  readonly unit?: string | undefined
  /** Partition key, visible to clients: never the key itself, nor a plain hash of it. */
  readonly pk?: Uint8Array | undefined
  /**
   * Key of a parameter without a value on the policy's item, with a vendor prefix, such as
   * `acme-shadow`.
   */
  readonly vendor?: string | undefined
}

/** Returns the limit that headers show; `undefined` if the policy is hidden or unlimited. */
export function shownLimit(state: PolicyState): number | undefined {
  if (state.hidden === true) return undefined
  const limit = Math.max(0, Math.floor(state.limit))
  return limit <= maxInteger ? limit : undefined
}

/** Returns the units left that headers show, from 0 to `limit`; `undefined` if unknown. */
export function shownRemaining(state: PolicyState, limit: number): number | undefined {
  const { remaining } = state
  if (remaining === undefined || Number.isNaN(remaining)) return undefined
  return Math.min(Math.max(0, Math.floor(remaining)), limit)
}

/** Returns whether a policy counts requests. Dialects before draft-8 have no other unit. */
export function countsRequests(state: PolicyState): boolean {
  return state.unit === undefined || state.unit === 'requests'
}

/** The largest integer of a structured field: 15 digits (RFC 9651 §3.3.1). */
export const maxInteger = 999_999_999_999_999

/**
 * Converts milliseconds to whole seconds, rounded up and at least 1: a 0 is legal in most fields,
 * but clients that pace themselves divide by it. `undefined` if there is none, or too large for a
 * field.
 */
export function wholeSeconds(durationMs: number | undefined): number | undefined {
  if (durationMs === undefined) return undefined
  const seconds = Math.max(1, Math.ceil(durationMs / 1000))
  return seconds <= maxInteger ? seconds : undefined
}

/**
 * 20 days. Node's timers overflow at 2^31 ms (24.8 days) and then fire at once; axios-retry adds up
 * to 20% to the wait.
 */
const maxRetryAfterMs = 1_728_000_000

/**
 * Returns the value of Retry-After: whole seconds from 1 to 1,728,000. Zero, fractions, dates and
 * longer delays each make some client retry at once.
 *
 * @param jitterMs is only ever added: resets synchronise clients, which add no jitter to a delay
 * from a server
 * @returns `undefined` if the wait is unknown or `Infinity`: a header would make a false promise
 * @see core/src/engine/outcome.ts and core/src/model/decision.ts, which compute the wait, and
 * http/src/responses/response-fields.ts, which computes the jitter
 */
export function formatRetryAfter(
  retryAfterMs: number | undefined,
  jitterMs = 0,
): string | undefined {
  if (retryAfterMs === undefined || retryAfterMs === Number.POSITIVE_INFINITY) return undefined
  const waitMs = jitterMs > 0 ? retryAfterMs + jitterMs : retryAfterMs
  const seconds = wholeSeconds(Math.min(waitMs, maxRetryAfterMs))
  return seconds === undefined ? undefined : `${seconds}`
}

/**
 * Returns the wait (ms) of a request at the policies that deny it; `Infinity` when one of them
 * never lets it pass.
 */
export function longestWaitMs(states: readonly PolicyState[]): number | undefined {
  const waitsMs = states.flatMap((state) => (state.denied ? (policyWaitMs(state) ?? []) : []))
  return waitsMs.length > 0 ? Math.max(...waitsMs) : undefined
}

/**
 * Returns the wait (ms) of a request at a policy that denies it; `undefined` when that is unknown.
 */
function policyWaitMs({ limit, retryAfterMs }: PolicyState): number | undefined {
  if (limit < 1) return Number.POSITIVE_INFINITY
  return Number.isNaN(retryAfterMs) ? undefined : retryAfterMs
}

/**
 * Returns the time (ms) from which every reset field is computed. The reset of a violated policy
 * equals its Retry-After without jitter, so that a client may follow either. A policy without a
 * reset (concurrency) gets none: its retry is only a hint. A limit of 0 never lets anything pass.
 */
export function effectiveResetMs(state: PolicyState, rejected: boolean): number | undefined {
  if (state.limit < 1 || state.resetMs === undefined) return undefined
  const waitMs = rejected && state.denied ? policyWaitMs(state) : undefined
  if (waitMs === undefined || waitMs === Number.POSITIVE_INFINITY) return state.resetMs
  return Math.min(waitMs, maxRetryAfterMs)
}

/** The single policy that dialects before draft-8 can show. */
export interface BindingPolicy {
  readonly state: PolicyState
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number | undefined
  readonly violated: boolean
  /** The wait (ms) of the request, only if violated; `Infinity` if no wait helps. */
  readonly waitMs: number | undefined
  /** Number of further requests of this cost that would pass; a cost of 0 counts as 1. */
  readonly passes: number
}

/**
 * Returns the visible policy that will stop the client first. Of policies that deny, it is the one
 * with the longest wait. Otherwise it is the one that lets the fewest requests of this cost pass,
 * then the one that resets last, then the first.
 *
 * `undefined` if there is none, or if the policies that deny count a unit other than requests:
 * numbers of a policy that lets the request pass would contradict the refusal.
 */
export function bindingPolicy(
  states: readonly PolicyState[],
  rejected: boolean,
): BindingPolicy | undefined {
  let binding: BindingPolicy | undefined
  for (const state of states) {
    const candidate = candidateOf(state, rejected)
    if (candidate && (!binding || bindsBefore(candidate, binding))) binding = candidate
  }
  if (!rejected || binding?.violated) return binding
  const isDeniedByOther = states.some((one) => one.denied && !one.hidden && !countsRequests(one))
  return isDeniedByOther ? undefined : binding
}

function candidateOf(state: PolicyState, rejected: boolean): BindingPolicy | undefined {
  const limit = countsRequests(state) ? shownLimit(state) : undefined
  const remaining = limit === undefined ? undefined : shownRemaining(state, limit)
  if (limit === undefined || remaining === undefined) return undefined
  const violated = rejected && state.denied === true
  return {
    state,
    limit,
    remaining,
    resetMs: effectiveResetMs(state, rejected),
    violated,
    waitMs: violated ? policyWaitMs(state) : undefined,
    passes: Math.floor(remaining / Math.max(1, state.cost || 1)),
  }
}

function bindsBefore(one: BindingPolicy, other: BindingPolicy): boolean {
  if (one.violated !== other.violated) return one.violated
  if (one.violated) return (one.waitMs ?? -1) > (other.waitMs ?? -1)
  if (one.passes !== other.passes) return one.passes < other.passes
  return (one.resetMs ?? -1) > (other.resetMs ?? -1)
}
