import { parseHeaders } from '@sluice/headers'

/** What is read of a third party's answer. */
export interface ThirdPartyAnswer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/** The answer that a call came to, if it is one: of fetch, or as other clients have them (axios, got, Octokit). */
export function thirdPartyAnswerOf(value: unknown): ThirdPartyAnswer | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const status: unknown = Reflect.get(value, 'status') ?? Reflect.get(value, 'statusCode')
  const headers: unknown = Reflect.get(value, 'headers')
  if (typeof status !== 'number' || typeof headers !== 'object' || headers === null) {
    return undefined
  }
  return { status, headers: { get: (name) => fieldOf(headers, name) } }
}

function fieldOf(headers: object, name: string): string | null {
  const get: unknown = Reflect.get(headers, 'get')
  const value: unknown =
    typeof get === 'function' ? get.call(headers, name) : Reflect.get(headers, name.toLowerCase())
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}

/** Where it refuses and does not say for how long. */
const unsaidMs = 1_000

/** A third party that says more than this is not believed: somebody would have to look anyway. */
const longestMs = 86_400_000

/** How long a third party wants no more calls: what it says with a refusal, or that nothing is left of a quota until its reset. */
export function pauseMs({ status, headers }: ThirdPartyAnswer): number {
  const { retryAfterMs, policies } = parseHeaders(headers, { nowMs: theirNowMs(headers) })
  const spent = policies.filter(({ remaining }) => remaining === 0)
  const untilResetMs = Math.max(0, ...spent.map(({ resetMs = 0 }) => resetMs))
  const isRefusal =
    status === 429 ||
    (status === 503 && retryAfterMs !== undefined) ||
    (status === 403 && (retryAfterMs !== undefined || spent.length > 0))
  const saidMs = isRefusal ? (retryAfterMs ?? (untilResetMs || unsaidMs)) : untilResetMs
  return Math.min(saidMs, longestMs)
}

/** Dates are by the clock of whoever sends them. `Date` is floored to the second, which makes waits longer, never shorter. */
function theirNowMs(headers: ThirdPartyAnswer['headers']): number | undefined {
  const dateMs = Date.parse(headers.get('Date') ?? '')
  return Number.isNaN(dateMs) ? undefined : dateMs
}
