import { SluiceError, warnOnce } from '@sluice/core'
import { type JobAnswer, problem, retryIn } from './answers.ts'

/** Nobody knows when a broker that failed comes back. */
const brokerRetryMs = 5_000

/** What work comes to, or 503 where the broker fails: that is our problem, and not the client's. */
export async function orUnavailable<T>(work: () => Promise<T>): Promise<T | JobAnswer> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    warnOnce(`the queue did not answer a request: ${error.message}`, error.code)
    return problem(503, {}, retryIn(brokerRetryMs))
  }
}
