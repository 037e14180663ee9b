import type { Hold } from '@sluice/http'

/** The part of a runtime that the end of a response needs. */
export interface FetchRuntime {
  readonly request: Pick<Request, 'method'> & {
    /** Aborted when the client leaves; some runtimes have none. */
    readonly signal?: AbortSignal
  }
  /** Keeps the runtime awake until the work is done. */
  readonly waitUntil: (work: Promise<unknown>) => void
}

/**
 * Settles what a request of fetch holds as soon as its response is over, once: when its body was
 * read to the end, its client left, or the handler failed.
 */
export class FetchEnd {
  readonly #runtime: FetchRuntime
  readonly #holds: Hold[] = []
  #isOver = false
  /** The status of the response, once there is one; `undefined` where its client left. */
  #status: number | undefined
  #settled: ((work: unknown) => void) | undefined

  constructor(runtime: FetchRuntime) {
    this.#runtime = runtime
  }

  add(hold: Hold): void {
    this.#holds.push(hold)
    if (this.#isOver) this.#runtime.waitUntil(this.#settle())
    else if (this.#holds.length === 1) this.#listen()
  }

  /**
   * Watches the body of a response, if the request holds something.
   * @returns the body to send
   */
  watch({ status, body }: Response): ReadableStream | null {
    if (this.#isOver) return body
    this.#status = status
    const isRead =
      body !== null && this.#holds.length > 0 && this.#runtime.request.method !== 'HEAD'
    if (isRead) {
      const stream = watched(body, (isWhole) => this.finish(isWhole ? status : undefined))
      dropped?.register(stream, () => this.finish(status))
      return stream
    }
    this.finish(status)
    return body
  }

  /** @param status `undefined`: the client left before the end */
  finish(status: number | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#status = status
    this.#settled?.(this.#settle())
  }

  #listen(): void {
    const { request, waitUntil } = this.#runtime
    const { signal } = request
    waitUntil(
      new Promise((resolve) => {
        this.#settled = resolve
      }),
    )
    if (signal?.aborted) this.finish(undefined)
    else signal?.addEventListener('abort', () => this.finish(undefined), { once: true })
  }

  #settle(): Promise<unknown> {
    const status = this.#status
    const holds = this.#holds.splice(0)
    return Promise.all(
      holds.map((hold) => (status === undefined ? hold.abort() : hold.finish(status))),
    )
  }
}

/**
 * Settles what a body held that other code replaced: nobody reads or cancels it, so the collector
 * of garbage is the only one to notice. Without it a lease would be renewed for ever. Older edge
 * runtimes have no such registry.
 */
const dropped =
  typeof FinalizationRegistry === 'undefined'
    ? undefined
    : new FinalizationRegistry<() => void>((settle) => settle())

/**
 * Makes a body that tells of its end.
 * @param ended receives whether the body was read to its end
 */
function watched(body: ReadableStream, ended: (isWhole: boolean) => void): ReadableStream {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) {
            controller.enqueue(value)
            return
          }
          ended(true)
          controller.close()
        } catch (error) {
          ended(false)
          controller.error(error)
        }
      },
      cancel(reason) {
        ended(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
