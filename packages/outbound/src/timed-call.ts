import { SluiceError } from '@sluice/core'
import type { CallContext } from './outbound-options.ts'

export interface CallTerms {
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
}

/** Makes a call; one that does not settle in time is told to stop, and is not waited for, whether it stops or not. */
export function timedCall<T>(
  name: string,
  call: (context: CallContext) => Promise<T>,
  { signal, timeoutMs }: CallTerms,
): Promise<T> {
  const controller = new AbortController()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new SluiceError(
        'SLUICE_OUTBOUND_TIMEOUT',
        `a call to '${name}' was not answered within ${timeoutMs} ms (timeout); whether it arrived is unknown`,
      )
      reject(error)
      controller.abort(error)
    }, timeoutMs)
    const made = async (): Promise<T> =>
      call({ signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal })
    made()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

/** The answer that an error comes with: clients that throw on its status give it along. */
export function responseOf(error: unknown): object | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const response: unknown = Reflect.get(error, 'response')
  return typeof response === 'object' && response !== null ? response : undefined
}
