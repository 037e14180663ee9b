import { createLimiter, type Decision, memoryStore, type PolicyOptions } from '@sluice/core'
import { type Dialect, formatHeaders } from '@sluice/headers'

export interface Arrival {
  readonly atMs: number
  readonly path: string
  readonly status: number
}

export interface LimitedApiOptions {
  /** The policies of a path. Those of one name are one. */
  policiesOf(path: string): readonly PolicyOptions[]
  readonly dialects?: readonly Dialect[]
  /** How long a request, and its answer, are under way, in ms. @default 5 */
  readonly latencyMs?: number
  /** What each request costs. @default 1 */
  readonly cost?: number
  /** How much longer it takes at most, in ms. @default 0 */
  readonly spreadMs?: number
  /** How a refusal says when to come back, where not as the dialects do. */
  readonly retryAfter?: 'date' | 'epoch' | undefined
  /** How long the bodies of answers take, in ms. @default 0 */
  readonly bodyMs?: number
}

/** An API with real limiters, by `Authorization`, at the other end of a faked network. */
export function limitedApi(options: LimitedApiOptions) {
  const { policiesOf, dialects = ['draft-11', 'legacy'], retryAfter } = options
  const { latencyMs = 5, spreadMs = 0, cost = 1, bodyMs = 0 } = options
  const store = memoryStore()
  const arrivals: Arrival[] = []
  const latency = () =>
    new Promise<void>((resolve) => setTimeout(resolve, latencyMs + Math.random() * spreadMs))

  async function answer(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
    const request = new Request(input instanceof Request ? input : String(input), init)
    request.signal.throwIfAborted()
    await latency()
    const { pathname: path } = new URL(request.url)
    const limiter = createLimiter({ policies: [...policiesOf(path)], store })
    const key = `client ${request.headers.get('Authorization')}`
    const decision = await limiter.consume(key, { cost })
    const headers = headersOf(decision, dialects)
    const status = decision.allowed ? 200 : 429
    arrivals.push({ atMs: performance.now(), path, status })
    if (status === 429 && retryAfter !== undefined) {
      const instantMs = Math.ceil((Date.now() + decision.retryAfterMs) / 1000) * 1000
      const isDate = retryAfter === 'date'
      headers.set('Retry-After', isDate ? new Date(instantMs).toUTCString() : `${instantMs / 1000}`)
    }
    await latency()
    return new Response(bodyMs > 0 ? slowBody(bodyMs) : '', { status, headers })
  }

  return { fetch: abortable(answer), arrivals }
}

/** A request that is aborted under way arrives all the same, but nobody hears of its answer. */
function abortable(send: typeof fetch): typeof fetch {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const signal = input instanceof Request ? input.signal : init?.signal
      signal?.addEventListener('abort', () => reject(signal.reason))
      send(input, init).then(resolve, reject)
    })
}

function slowBody(tookMs: number): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined
  return new ReadableStream({
    start(controller) {
      timer = setTimeout(() => controller.close(), tookMs)
    },
    cancel: () => clearTimeout(timer),
  })
}

/** A signal that aborts by the faked clock, as `AbortSignal.timeout` does by the real one. */
export function abortsAfter(ms: number): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(new Error('out of time')), ms)
  return controller.signal
}

function headersOf({ allowed, outcomes }: Decision, dialects: readonly Dialect[]): Headers {
  const states = outcomes.map(({ policy: { name, windowMs }, ...outcome }) => {
    const { limit, remaining, resetMs, retryAfterMs } = outcome
    return { name, windowMs, limit, remaining, resetMs, retryAfterMs, denied: !outcome.allowed }
  })
  const lines = formatHeaders(states, { dialects, nowMs: Date.now(), rejected: !allowed })
  return new Headers(lines.map(([name, value]) => [name, value]))
}
