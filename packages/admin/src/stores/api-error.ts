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

/** Codes of Sluice for an unavailable store or broker, independent of the message. */
const unavailable = /^SLUICE_(?:STORE_|REDIS_|BROKER_|NOT_DONE|UNANSWERED)/
const mistakes = /^SLUICE_(?:OPTION|POLICY|KEY|LIMIT|COST|TIER|PENALTY)_/

/** The refusal that an error stands for; `undefined` for one that is a fault of the server. */
export function refusalOf(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (!isSluiceError(error)) return undefined
  const { code, message } = error
  if (code === 'SLUICE_POLICY_CHANGED') return new ApiError(409, message, { code })
  if (mistakes.test(code)) return new ApiError(400, message, { code })
  return unavailable.test(code) ? away(code) : undefined
}

/** Time (ms) in which a store or a broker has to answer. A frozen one would never do so. */
const deadlineMs = 5_000

/**
 * Asks a store or a broker, whose errors are of any kind, and may name hosts and users.
 * @throws ApiError when it does not answer in time
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
    warnOnce(`admin could not ask a store or a broker: ${errorText(error)}`, 'admin store')
    throw away('SLUICE_STORE_FAILED')
  }
}

/** Tells what may come of an action that was begun, if its store was late. */
export function unfinished(error: unknown): unknown {
  if (!(error instanceof ApiError && error.code === 'SLUICE_STORE_DEADLINE')) return error
  return away(error.code, 'The action may still take effect: check before you try again.')
}

/** The future of an unanswered call, by the code of its error. A late one was a read. */
const futures: ReadonlyMap<string, string> = new Map([
  ['SLUICE_STORE_DEADLINE', 'Nothing was begun. Try again.'],
  [
    'SLUICE_UNANSWERED',
    'The action takes effect within seconds, or never: check before you try again.',
  ],
])

function away(code: string, future: string = futures.get(code) ?? 'Try again.'): ApiError {
  const detail = `The store, or a broker, does not answer. ${future}`
  return new ApiError(503, detail, { code, headers: { 'Retry-After': '2' } })
}
