import {
  type ControlCall,
  controlled,
  errorText,
  isSluiceError,
  type MaybePromise,
  warnOnce,
} from '@sluice/core'

export class ApiError extends Error {
  override readonly name: string = 'ApiError'
  readonly status: number
  readonly code: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    detail: string,
    { code, headers = {} }: { code?: string; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** Sluice codes for an unavailable store or broker, independent of the message. */
const unavailable = /^SLUICE_(?:STORE_|REDIS_|BROKER_|NOT_DONE|UNANSWERED)/
const mistakes = /^SLUICE_(?:OPTION|POLICY|KEY|LIMIT|COST|TIER|PENALTY)_/

/** Returns the refusal for an error; `undefined` if it is the server's fault. */
export function refusalOf(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (!isSluiceError(error)) return undefined
  const { code, message } = error
  if (code === 'SLUICE_POLICY_CHANGED') return new ApiError(409, message, { code })
  if (mistakes.test(code)) return new ApiError(400, message, { code })
  return unavailable.test(code) ? away(code) : undefined
}

/** Time limit (ms) for a store or a broker. A frozen one would never answer. */
const deadlineMs = 5_000

/**
 * Calls a store or a broker, whose errors may be of any kind and contain hosts and users.
 * @throws ApiError if it does not answer in time
 */
export async function fromStore<T>(
  ask: (control: ControlCall) => MaybePromise<T>,
  timeoutMs: number = deadlineMs,
): Promise<T> {
  try {
    return await controlled(timeoutMs, ask)
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal) throw refusal
    warnOnce(`admin could not reach a store or a broker: ${errorText(error)}`, 'admin store')
    throw away('SLUICE_STORE_FAILED')
  }
}

/** Adds what may become of a started action whose store was late. */
export function unfinished(error: unknown): unknown {
  if (!(error instanceof ApiError && error.code === 'SLUICE_STORE_DEADLINE')) return error
  return away(error.code, 'The action may still take effect: check before you try again.')
}

/** The possible outcome of an unanswered call, by error code. A late call was a read. */
const futures: ReadonlyMap<string, string> = new Map([
  ['SLUICE_STORE_DEADLINE', 'Nothing was started. Try again.'],
  [
    'SLUICE_UNANSWERED',
    'The action takes effect within seconds, or never: check before you try again.',
  ],
])

function away(code: string, future: string = futures.get(code) ?? 'Try again.'): ApiError {
  const detail = `The store or a broker does not answer. ${future}`
  return new ApiError(503, detail, { code, headers: { 'Retry-After': '2' } })
}
