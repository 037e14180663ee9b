/**
 * Watches a body that is sent. Calls `end` with the status once it was read to its end, and with
 * `undefined` once it fails or is cancelled.
 * @returns the body to send
 */
export function watchedBody(
  body: ReadableStream,
  status: number,
  end: (status: number | undefined) => void,
): ReadableStream {
  const reader = body.getReader()
  const leave = (): void => end(undefined)
  reader.closed.then(() => end(status), leave)
  async function pull(controller: ReadableStreamDefaultController): Promise<void> {
    const { done, value } = await reader.read()
    if (done) controller.close()
    else controller.enqueue(value)
  }
  function cancel(reason: unknown): Promise<void> {
    leave()
    return reader.cancel(reason)
  }
  const stream = new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
  // Bound: a closure would keep the reader, and that costs 9 µs for each response.
  dropped?.register(stream, end.bind(undefined, status))
  return stream
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
