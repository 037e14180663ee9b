import { parseHeaders, parseHttpDate } from '@sluice/headers'

/** The part of a third party's answer that Sluice reads. */
export interface ThirdPartyAnswer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/**
 * Returns the result of a call if it is an answer: from fetch, or from clients like axios, got and
 * Octokit.
 */
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

/** Pause (ms) after a refusal without a wait. */
const unsaidMs = 1_000

/** Maximum pause (ms): a third party that asks for more is probably mistaken. */
const maxPauseMs = 86_400_000

/**
 * Returns the pause (ms) that an answer asks for: the wait of a refusal, or the reset of a quota
 * with nothing left.
 */
export function pauseMs({ status, headers }: ThirdPartyAnswer): number {
  // The third party's clock. `Date` is rounded down to the second, which makes waits longer.
  const nowMs = parseHttpDate(headers.get('Date') ?? '', Date.now())
  const { retryAfterMs, policies } = parseHeaders(headers, { nowMs })
  const spent = policies.filter(({ remaining }) => remaining === 0)
  const untilResetMs = Math.max(0, ...spent.map(({ resetMs = 0 }) => resetMs))
  const isRefusal =
    status === 429 ||
    (status === 503 && retryAfterMs !== undefined) ||
    (status === 403 && (retryAfterMs !== undefined || spent.length > 0))
  const saidMs = isRefusal ? (retryAfterMs ?? (untilResetMs || unsaidMs)) : untilResetMs
  return Math.min(saidMs, maxPauseMs)
}
