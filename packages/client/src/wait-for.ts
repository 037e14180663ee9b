import { parseHeaders } from '@sluice/headers'
import { clockMs } from './clock.ts'
import { createFetch } from './create-fetch.ts'
import { monitorUrl } from './monitor-url.ts'
import { bound, duration, knownFields, optionalFunction } from './option-checks.ts'
import { pause } from './pause.ts'
import { serverNowMs } from './server-clock.ts'
import { StillPendingError } from './still-pending-error.ts'

export interface WaitForOptions {
  /** What asks the monitor. @default createFetch() */
  fetch?: typeof globalThis.fetch
  /** Headers of each poll, such as `Authorization`. A monitor of another origin than the answer gets none of them. @default none */
  headers?: RequestInit['headers']
  /** Ends the waiting. @default none */
  signal?: AbortSignal
  /** How long to wait before each poll where the server does not say, in ms; half as long again each time, up to 30 s. @default 1000 */
  intervalMs?: number
  /** How long to wait in all, in ms, until a `StillPendingError`. @default 600,000 */
  maxWaitMs?: number
  /** Whether an answer of the monitor means that the job is not done. @default a 202, or a 200, 429 or 503 with `Retry-After` */
  isPending?: (response: Response) => boolean | Promise<boolean>
  /** Is told of every answer that means so. */
  onPending?: (response: Response) => void
}

const maxIntervalMs = 30_000

/**
 * Waits for the job that a 202 speaks of, and answers what its monitor answers in the end: the result (after a redirect,
 * where the monitor sends one), the problem of a job that failed, or the 404 or 410 of one that is not known any more. Any
 * other answer than a 202 is the result already.
 *
 * @throws StillPendingError when `maxWaitMs` is over
 * @example
 * const result = await waitFor(await fetch('/reports', { method: 'POST', headers: { Prefer: 'respond-async' } }))
 */
export async function waitFor(accepted: Response, options: WaitForOptions = {}): Promise<Response> {
  const settings = readOptions(options)
  if (accepted.status !== 202) return accepted
  let monitor = await monitorUrl(accepted)
  if (monitor === undefined) {
    throw new TypeError('waitFor: the 202 names no monitor, neither in Location nor in its body')
  }
  const deadlineMs = clockMs() + settings.maxWaitMs
  let { intervalMs } = settings
  for (let response = accepted; ; intervalMs = Math.min(maxIntervalMs, intervalMs * 1.5)) {
    const untilMs = clockMs() + (toldMs(response) ?? intervalMs) * (1 + Math.random() / 10)
    if (untilMs > deadlineMs) throw new StillPendingError(monitor, response)
    await pause(untilMs, settings.signal)
    if (response !== accepted) response.body?.cancel().catch(() => undefined)
    response = await settings.fetch(monitor, pollOf(monitor, accepted, settings))
    if (!(await settings.isPending(response))) return response
    settings.onPending?.(response)
    if (response.status === 202) monitor = (await monitorUrl(response)) ?? monitor
  }
}

const fields = [
  'fetch',
  'headers',
  'signal',
  'intervalMs',
  'maxWaitMs',
  'isPending',
  'onPending',
] as const satisfies readonly (keyof WaitForOptions)[]

function readOptions(options: WaitForOptions) {
  knownFields(options, 'waitFor', fields)
  return {
    fetch: optionalFunction(options.fetch, 'fetch') ?? createFetch(),
    headers: options.headers,
    signal: options.signal,
    intervalMs: duration(options.intervalMs, 'intervalMs', 1000),
    maxWaitMs: bound(options.maxWaitMs, 'maxWaitMs', 600_000),
    isPending: optionalFunction(options.isPending, 'isPending') ?? saysPending,
    onPending: optionalFunction(options.onPending, 'onPending'),
  }
}

/** Who was led elsewhere is at the result. A poll that came too early, or to a server that is busy, says nothing of the job. */
function saysPending({ status, headers, redirected }: Response): boolean {
  if (status === 202) return true
  return !redirected && [200, 429, 503].includes(status) && headers.has('Retry-After')
}

function toldMs({ headers }: Response): number | undefined {
  return parseHeaders(headers, { nowMs: serverNowMs(headers) }).retryAfterMs
}

function pollOf(
  monitor: string,
  { url }: Response,
  { headers, signal }: ReturnType<typeof readOptions>,
): RequestInit {
  const isHome = url === '' || new URL(monitor).origin === new URL(url).origin
  return { ...(isHome && headers && { headers }), ...(signal && { signal }) }
}
