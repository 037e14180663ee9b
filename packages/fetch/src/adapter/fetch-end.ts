import type { Hold } from '@sluice/http'

/** A request of fetch, and the runtime that serves it. */
export interface FetchRequest {
  readonly request: Request
  /** The address of the connection, as the runtime tells it. */
  readonly remoteAddress: () => string | undefined
  /** Keeps the runtime awake until the work is done. */
  readonly waitUntil: (work: Promise<unknown>) => void
}

/**
 * Settles what a request of fetch holds as soon as its response is over, once: when its body was
 * read to the end, its client left, or the handler failed.
 */
export class FetchEnd {
  readonly #asked: FetchRequest
  readonly #settlers: ((status: number | undefined) => void)[] = []
  #over: { readonly status: number | undefined } | undefined

  constructor(asked: FetchRequest) {
    this.#asked = asked
  }

  add(hold: Hold): void {
    const settled = new Promise((resolve) => {
      const settle = (status: number | undefined) =>
        resolve(status === undefined ? hold.abort() : hold.finish(status))
      if (this.#over) settle(this.#over.status)
      else if (this.#settlers.push(settle) === 1) this.#listen()
    })
    this.#asked.waitUntil(settled)
  }

  /** Ends the response, once. @param status `undefined`: the client left before the end */
  finish(status: number | undefined): void {
    if (this.#over) return
    this.#over = { status }
    for (const settle of this.#settlers) settle(status)
  }

  /**
   * Watches the body of a response, if the request holds something.
   * @returns the body to send
   */
  watch({ status, body }: Response): ReadableStream | null {
    if (body === null || this.#settlers.length === 0 || this.#asked.request.method === 'HEAD') {
      this.finish(status)
      return body
    }
    const stream = watched(body, (isWhole) => this.finish(isWhole ? status : undefined))
    dropped?.register(stream, () => this.finish(status))
    return stream
  }

  #listen(): void {
    // Some runtimes have none.
    const signal: AbortSignal | undefined = this.#asked.request.signal
    if (signal?.aborted) this.finish(undefined)
    else signal?.addEventListener('abort', () => this.finish(undefined), { once: true })
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
          if (!done) return controller.enqueue(value)
          ended(true)
          controller.close()
        } catch (error) {
          ended(false)
          throw error
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
