/**
 * Wraps a body to notice its end. Calls `end` with the status after the last chunk, and with
 * `undefined` if the body fails or is cancelled.
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
  // Bound: a closure would keep the reader, which costs 9 µs per response.
  dropped?.register(stream, end.bind(undefined, status))
  return stream
}

/**
 * Settles requests whose body other code replaced: only the garbage collector notices that, and
 * leases would be renewed forever. Older edge runtimes have no such registry.
 */
const dropped =
  globalThis.FinalizationRegistry && new FinalizationRegistry<() => void>((settle) => settle())
