import type { Hold } from '@sluice/http'

/**
 * Settles what a request of fetch holds as soon as its response is over, once: when its body was
 * read to the end, its client left, or the handler failed.
 */
export class FetchEnd {
  readonly #settlers: ((status: number | undefined) => void)[] = []
  #over: { readonly status: number | undefined } | undefined

  /** Adds a hold. @returns the work after the response, for runtimes that have to stay awake */
  add(hold: Hold, signal: AbortSignal | undefined): Promise<unknown> {
    signal?.addEventListener('abort', () => this.finish(undefined), { once: true })
    return new Promise((resolve) => {
      const settle = (status: number | undefined) =>
        resolve(status === undefined ? hold.abort() : hold.finish(status))
      this.#settlers.push(settle)
      if (this.#over) settle(this.#over.status)
      else if (signal?.aborted) this.finish(undefined)
    })
  }

  /** Ends the response, once. @param status `undefined`: the client left before the end */
  finish(status: number | undefined): void {
    if (this.#over) return
    this.#over = { status }
    for (const settle of this.#settlers) settle(status)
  }

  /** Watches a body that is sent, if the request holds something. @returns the body to send */
  watch(body: ReadableStream | null, status: number): ReadableStream | null {
    if (body === null || this.#over || this.#settlers.length === 0) {
      this.finish(status)
      return body
    }
    const stream = watched(body, (isWhole) => this.finish(isWhole ? status : undefined))
    dropped?.register(stream, () => this.finish(status))
    return stream
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
 * Makes a body that tells of its end. It is a function of its own so that `dropped` does not keep
 * the reader: that costs 9 µs for each response.
 * @param ended receives whether the body was read to its end
 */
function watched(body: ReadableStream, ended: (isWhole: boolean) => void): ReadableStream {
  const reader = body.getReader()
  reader.closed.then(
    () => ended(true),
    () => ended(false),
  )
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel(reason) {
        ended(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
