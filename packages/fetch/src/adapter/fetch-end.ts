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
    if (body === null || this.#settlers.length === 0) {
      this.finish(status)
      return body
    }
    const reader = body.getReader()
    reader.closed.then(
      () => this.finish(status),
      () => this.finish(undefined),
    )
    const pull = async (to: ReadableStreamDefaultController) => {
      const { done, value } = await reader.read()
      if (done) to.close()
      else to.enqueue(value)
    }
    const cancel = (reason: unknown) => {
      this.finish(undefined)
      return reader.cancel(reason)
    }
    const stream = new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
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
