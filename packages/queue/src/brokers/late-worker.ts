import type { BrokerWorker } from '../broker.ts'

/** A worker of a queue that is still being opened. */
export class LateWorker implements BrokerWorker {
  readonly #opening: Promise<BrokerWorker>

  constructor(opening: Promise<BrokerWorker>) {
    this.#opening = opening
  }

  async close(): Promise<void> {
    // One that could not be opened was reported, and has nothing to close.
    const worker = await this.#opening.catch(() => undefined)
    await worker?.close()
  }

  abandon(): void {
    this.#opening.then(
      (worker) => worker.abandon(),
      () => undefined,
    )
  }
}
