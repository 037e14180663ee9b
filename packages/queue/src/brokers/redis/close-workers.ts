import { endsWithin } from '@sluice/core'
import type { BrokerWorker } from '../../broker.ts'

/** Time (ms) that workers have to settle their runs when their broker closes. */
const patienceMs = 2_000

/** Closes the workers that are still open as their broker closes. */
export async function closeWorkers(workers: readonly BrokerWorker[]): Promise<void> {
  const closing = Promise.all(workers.map((worker) => worker.close()))
  if (await endsWithin(closing, patienceMs)) return
  for (const worker of workers) worker.abandon()
  await closing
}
