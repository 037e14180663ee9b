import { parseHttpDate } from '@sluice/headers'
import { pause, type Waiting } from '../runtime/clock.ts'

/** Maximum size (bytes) of a document: a small compressed body may expand to gigabytes. */
const maxBytes = 65_536

export interface Patience {
  /** Time at which reading stops, on the monotonic clock. */
  readonly untilMs: number
  readonly signal: AbortSignal | undefined
}

/**
 * Returns the members of a JSON body, which stays unread for the caller. Returns none if there is
 * no JSON object, or if it is too long or too late.
 */
export async function peekJson(
  response: Response,
  { untilMs, signal }: Patience,
): Promise<Readonly<Record<string, unknown>>> {
  const { body, bodyUsed, headers } = response
  const isJson = /[/+]json\b/i.test(headers.get('Content-Type') ?? '')
  // A body without a reader comes from another implementation of fetch.
  if (!isJson || bodyUsed || !body || !('getReader' in body)) return {}
  const reading: Waiting = new Set()
  try {
    const reader = response.clone().body?.getReader()
    const stop = (): void => void reader?.cancel().catch(() => undefined)
    pause(untilMs, signal, [reading]).then(stop, stop)
    const json: unknown = JSON.parse(await textOf(reader))
    return typeof json === 'object' ? { ...json } : {}
  } catch {
    // A truncated or non-JSON body is ignored.
    return {}
  } finally {
    for (const end of reading) end()
  }
}

/** Yields the chunks until the end, or until the stream is cancelled. */
async function textOf(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {}
    if (done || value === undefined) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxBytes) return ''
    text += decoder.decode(value, { stream: true })
  }
}

/**
 * Returns the server's time, so that the client's clock does not matter. `Date` is rounded down to
 * the second, which makes waits longer, never shorter. Pages see it only if the server exposes it.
 */
export function serverNowMs(headers: Headers): number {
  const nowMs = Date.now()
  return parseHttpDate(headers.get('Date') ?? '', nowMs) ?? nowMs
}

/** Ways to cancel a body: node-fetch returns a Node stream. */
interface Endable {
  cancel?(): Promise<void>
  destroy?(): unknown
}

/** Frees the connection of an unread answer. Errors of its body do not matter. */
export function dropBody({ body }: Response): void {
  const stream: Endable | null = body
  stream?.cancel?.().catch(() => undefined)
  stream?.destroy?.()
}
