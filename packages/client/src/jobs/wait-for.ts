import { parseHeaders } from '@sluice/headers'
import { pollJitterMs, pollWaits } from '../backoff.ts'
import { dropBody, type Patience, serverNowMs } from '../calls/response.ts'
import { readOptions, show } from '../option-checks.ts'
import { clockMs, type Deadline, deadlineIn, pause, unlessAborted } from '../runtime/clock.ts'
import { maxStatusMs, monitorInBody, monitorInHeaders, saysPending } from './monitor.ts'
import { type WaitForOptions, type WaitForSettings, WaitForTable } from './options.ts'

/** A job and its status monitor. */
interface Watched {
  readonly accepted: Response
  /** Base of relative monitors; empty if unknown. */
  readonly baseUrl: string
  monitor: string | undefined
  last: Response
}

/**
 * Waits for the job of a 202, and returns the last response from its monitor. That is the result
 * (also after a redirect), the problem of a failed job, or a 404 or 410 for an unknown job. A
 * response other than a 202 is returned unchanged. The body of the 202 is neither read nor
 * cancelled. Instead of the 202, you can pass a monitor's URL, such as the one in a
 * `StillPendingError`.
 *
 * @throws TypeError if it is neither a response nor a URL
 * @throws StillPendingError after `maxWaitMs`
 * @example
 * const headers = { Prefer: 'respond-async' }
 * const result = await waitFor(await fetch('/reports', { method: 'POST', headers }))
 */
export async function waitFor(
  asked: Response | string | URL,
  options: WaitForOptions = {},
): Promise<Response> {
  const settings = readOptions(new WaitForTable(), options, 'waitFor')
  const { accepted, url } = isResponse(asked)
    ? { accepted: asked, url: asked.url }
    : made(asked, settings)
  if (accepted.status !== 202) return accepted
  const baseUrl = settings.baseUrl ?? url
  const monitor = monitorInHeaders(accepted, baseUrl)
  const job: Watched = { accepted, baseUrl, monitor, last: accepted }
  const deadline = deadlineIn(settings.maxWaitMs, settings.signal)
  try {
    return await unlessAborted(poll(job, settings, deadline), deadline.signal)
  } catch (error) {
    if (error instanceof StillPendingError) throw error
    if (deadline.isOver()) throw new StillPendingError(job.monitor, job.last)
    if (job.last !== accepted) dropBody(job.last)
    throw error
  } finally {
    deadline.end()
  }
}

function isResponse(asked: unknown): asked is Response {
  return (
    typeof asked === 'object' &&
    asked !== null &&
    'headers' in asked &&
    'status' in asked &&
    typeof asked.status === 'number'
  )
}

/** Makes the 202 that a server would have sent to name this monitor. */
function made(asked: unknown, { baseUrl }: WaitForSettings): { accepted: Response; url: string } {
  const isText = typeof asked === 'string' || asked instanceof URL
  const url = isText && URL.canParse(String(asked), baseUrl) ? new URL(asked, baseUrl) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `waitFor takes the Response that fetch resolves with, or the URL of a monitor (http or https), but got ${show(asked)}`,
    )
  }
  const headers = { Location: url.href, 'Retry-After': '0' }
  return { accepted: new Response(null, { status: 202, headers }), url: url.href }
}

async function poll(job: Watched, settings: WaitForSettings, deadline: Deadline) {
  const { accepted } = job
  const { atMs, signal } = deadline
  // Browsers do not allow `fetch` to be called as a method.
  const { fetch } = settings
  const waits = pollWaits(settings.intervalMs)
  job.monitor ??= await monitorInBody(accepted, job.baseUrl, { untilMs: atMs, signal })
  for (;;) {
    const monitor = checked(job, settings)
    const leftMs = atMs - clockMs()
    const nowMs = serverNowMs(job.last.headers)
    const waitMs = waits(parseHeaders(job.last.headers, { nowMs }).retryAfterMs)
    if (waitMs >= leftMs) throw new StillPendingError(monitor, job.last)
    const untilMs = clockMs() + waitMs + pollJitterMs(waitMs, (leftMs - waitMs) / 2)
    if (job.last !== accepted) dropBody(job.last)
    await pause(untilMs, signal)
    const { headers } = isHome(job) ? settings : {}
    const response = await fetch(monitor, headers ? { headers, signal } : { signal })
    if (signal.aborted) dropBody(response)
    signal.throwIfAborted()
    job.last = response
    if (!(await isPending(job, settings, deadline))) return response
    settings.onPending?.(response)
    if (response.status === 202) await follow(job, deadline)
  }
}

/** Follows a monitor that names another monitor. */
async function follow(job: Watched, deadline: Deadline): Promise<void> {
  const baseUrl = job.last.url || job.monitor || job.baseUrl
  job.monitor =
    monitorInHeaders(job.last, baseUrl) ??
    (await monitorInBody(job.last, baseUrl, shortly(deadline))) ??
    job.monitor
}

function isPending(
  { monitor = '', last }: Watched,
  settings: WaitForSettings,
  deadline: Deadline,
): boolean | Promise<boolean> {
  if (settings.isPending !== undefined) return settings.isPending(last)
  return saysPending(last, { monitor, ...shortly(deadline) })
}

function shortly({ signal }: Deadline): Patience {
  return { untilMs: clockMs() + maxStatusMs, signal }
}

/** Returns the monitor's URL. Throws if it must not be polled. */
function checked(job: Watched, { sameOrigin }: WaitForSettings): string {
  const { monitor, baseUrl } = job
  if (monitor === undefined) {
    throw new TypeError(
      'waitFor: the 202 has no monitor URL that may be polled, neither in Location nor in its body',
    )
  }
  if (!sameOrigin || isHome(job)) return monitor
  throw new TypeError(
    `waitFor: ${monitor} does not have the same origin as ${baseUrl || 'the 202, which has no URL'}; see the options sameOrigin and baseUrl`,
  )
}

function isHome({ monitor = '', baseUrl }: Watched): boolean {
  return URL.canParse(baseUrl) && new URL(monitor).origin === new URL(baseUrl).origin
}

/** A job that did not finish within `maxWaitMs` of `waitFor`. It may still be running. */
export class StillPendingError extends Error {
  override readonly name = 'StillPendingError'
  /** URL of the monitor, to poll again; `undefined` if it had not arrived. */
  readonly monitor: string | undefined
  /** The last response. Its body is cancelled if another poll followed. */
  readonly response: Response

  constructor(monitor: string | undefined, response: Response) {
    super(`${monitor ?? 'the job'} is still pending, as far as is known, and 'maxWaitMs' is over`)
    this.monitor = monitor
    this.response = response
  }
}
