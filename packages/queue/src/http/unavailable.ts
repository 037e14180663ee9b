import { isSluiceError, type SluiceError, warnOnce } from '@sluice/core'
import { type JobAnswer, problem, retryIn } from './answers.ts'

/** Nobody knows when a broker that failed comes back. */
const brokerRetryMs = 5_000

/** What work comes to, or 503 where the broker fails: that is our problem, and not the client's. */
export async function orUnavailable<T>(work: () => Promise<T>): Promise<T | JobAnswer> {
  return orWithout(work, { ...problem(503, {}, retryIn(brokerRetryMs)), isOurs: true })
}

/** What work comes to, or what stands in where the broker fails. */
export async function orWithout<T, U>(work: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work()
  } catch (error) {
    if (!isOfBroker(error)) throw error
    warnOnce(`the queue did not answer a request: ${error.message}`, error.code)
    return otherwise
  }
}

/** Any other error is one of the application: of a function of its own, or a payload that nothing can carry. */
function isOfBroker(error: unknown): error is SluiceError {
  return isSluiceError(error) && error.code.startsWith('SLUICE_BROKER_')
}
