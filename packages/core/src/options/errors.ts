/**
 * Returns the address of a page of the documentation, for messages: users of packages have no
 * `docs` folder.
 * @param name the name of the file without `.md`
 */
export function pageUrl(name: string): string {
  return `https://sluice-js.github.io/sluice/${name}.html`
}

/**
 * Every code that Sluice throws or reports, with its meaning. `docs/errors.md` lists the same codes
 * with the fix for each; a test keeps the two lists equal.
 */
export const errorCodes = {
  SLUICE_OPTION_UNKNOWN: 'an option that does not exist',
  SLUICE_OPTION_INVALID: 'an option whose value is out of its legal range',
  SLUICE_POLICY_NAME: 'a policy name that no header can carry',
  SLUICE_POLICY_DUPLICATE: 'two policies with the same name in one limiter',
  SLUICE_POLICY_UNKNOWN: 'a name that no profile or policy has',
  SLUICE_POLICY_FILE: 'a policy file with mistakes: the message lists each by line and column',
  SLUICE_POLICY_CHANGED: 'a policy change that conflicts with another one',
  SLUICE_POLICY_CONFLICT: 'one policy name with two algorithms or two windows on one store',
  SLUICE_POLICY_COMBINATION: 'two policies in one limiter that contradict each other',
  SLUICE_POLICY_RANGE: 'a limit and a window whose product is too large for exact arithmetic',
  SLUICE_LIMIT_INVALID: 'a limit that is not a whole number ≥ 0',
  SLUICE_TIER_UNKNOWN: 'a tier that the table does not have',
  SLUICE_SIGNAL_INVALID: 'a signal that does not return a number ≥ 0',
  SLUICE_PRIORITY_UNKNOWN: 'a priority that is not one of the classes',
  SLUICE_COST_INVALID: 'a cost that is not a whole number ≥ 0',
  SLUICE_BUDGET_ENDED: 'a metered stream whose budget ended',
  SLUICE_ROUTE_INVALID: 'a key of `routes` that is not a route',
  SLUICE_ROUTE_DUPLICATE: 'two routes in the options that match the same requests',
  SLUICE_PENALTY_MISSING: 'a block on a limiter without a penalty',
  SLUICE_ANSWER_INVALID: 'a function that did not return true or false',
  SLUICE_KEY_INVALID: 'a key that is not a string, is empty, or is longer than 16,384 characters',
  SLUICE_REFUSED: "a refused request, where `handler` is 'throw'",
  SLUICE_KEY_MISSING: 'a request for which no key was found',
  SLUICE_CLIENT_INVALID: 'an unknown Redis client',
  SLUICE_STORE_FAILED: 'a store that failed',
  SLUICE_STORE_DEADLINE: 'a store that did not answer in time',
  SLUICE_STORE_CHECK: 'a check that failed in a working store',
  SLUICE_STORE_REPLY: 'a reply from the store that does not match the call',
  SLUICE_STORE_CLOSED: 'a check after the store was closed',
  SLUICE_REDIS_CONNECTION: 'a Redis that cannot be reached',
  SLUICE_REDIS_AUTH: "a Redis that rejects the client's password",
  SLUICE_REDIS_PERMISSION: 'a Redis whose access rules forbid a command of the store',
  SLUICE_REDIS_READONLY: 'a Redis replica, which accepts no writes',
  SLUICE_REDIS_MEMORY: 'a Redis without memory for writes',
  SLUICE_REDIS_BUSY: 'a Redis that is loading data, running a script, or without a master',
  SLUICE_NOT_DONE: 'a change that was not made, and never will be',
  SLUICE_UNANSWERED: 'a change that was sent, and is made by its deadline or never',
  SLUICE_STATE_UNREADABLE: 'a stored value that could not be read and counted as empty',
  SLUICE_PAYLOAD_INVALID: 'a job payload that does not fit into JSON',
  SLUICE_BROKER_FAILED: 'a broker that failed or did not answer in time',
  SLUICE_BROKER_CLOSED: 'a call after the broker was closed',
  SLUICE_JOB_PERMANENT: 'a job that its handler marked as permanently failed',
  SLUICE_LEASE_LOST: 'a run of a job that now runs elsewhere',
  SLUICE_OUTBOUND_REFUSED: 'a call to a third party that was not made',
  SLUICE_OUTBOUND_TIMEOUT: 'a call to a third party that was not answered in time',
} as const

/** Code of a `SluiceError`. */
export type ErrorCode = keyof typeof errorCodes

/**
 * Returns whether an error has this code, or any code of Sluice. `instanceof` does not work here:
 * the ESM and the CommonJS build have a class each.
 */
export function isSluiceError(error: unknown, code?: ErrorCode): error is SluiceError {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false
  if (code !== undefined) return error.code === code
  return typeof error.code === 'string' && Object.hasOwn(errorCodes, error.code)
}

/**
 * The only error class that Sluice throws; distinguish errors by `code`. A denial is an error only
 * if `handler` is 'throw'.
 */
export class SluiceError extends Error {
  override readonly name: string = 'SluiceError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

const maxTextLength = 1_024

/** Returns the message of a thrown value, which can be anything; at most 1,024 characters. */
export function errorText(error: unknown): string {
  const text = textOf(error)
  if (text.length <= maxTextLength) return text
  // Does not cut a surrogate pair.
  return `${text.slice(0, maxTextLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'the thrown value cannot be converted to a string'
  }
}
