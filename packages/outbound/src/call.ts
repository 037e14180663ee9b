import { SluiceError, withDeadline } from '@sluice/core'
import type { RefusalReason } from './event.ts'
import type { Call, CallContext, CallOptions, OutboundFetchInit } from './options.ts'

const reasons: { readonly [reason in RefusalReason]: string } = {
  full: 'too many calls are waiting (maxQueue)',
  timeout: 'the call waited too long (maxWait)',
  aborted: 'its signal was aborted',
  closed: 'the outbound was closed',
}

export function callRefused(name: string, reason: RefusalReason): SluiceError {
  return new SluiceError(
    'SLUICE_OUTBOUND_REFUSED',
    `no call was made to '${name}': ${reasons[reason]}`,
  )
}

/** Reads the arguments of a `fetch`, which waits for its turn. */
export function fetchCall(
  input: string | URL | Request,
  init: OutboundFetchInit = {},
): { options: CallOptions; send: (context: CallContext) => Promise<Response> } {
  const { cost, priority, label, timeout, ...rest } = init
  const request = input instanceof Request ? input : undefined
  const url = new URL(request ? request.url : String(input))
  const method = rest.method ?? request?.method ?? 'GET'
  // `null` removes the signal of a Request.
  const signal = rest.signal === undefined ? request?.signal : rest.signal
  return {
    options: {
      label: label ?? `${method} ${url.origin}${url.pathname}`,
      ...{ cost, priority, timeout, signal: signal ?? undefined },
    },
    send: (context) => fetch(request ?? url, { ...rest, signal: context.signal }),
  }
}

/** Makes a call. If it does not settle in time, aborts its signal and stops waiting. */
export function timedCall<T>(
  name: string,
  call: (context: CallContext) => Promise<T>,
  { signal, timeout: timeoutMs }: Call,
): Promise<T> {
  const controller = new AbortController()
  const made = async (): Promise<T> =>
    call({ signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal })
  return withDeadline(made(), timeoutMs, () => {
    const error = new SluiceError(
      'SLUICE_OUTBOUND_TIMEOUT',
      `a call to '${name}' was not answered within ${timeoutMs} ms (timeout); whether it arrived is unknown`,
    )
    controller.abort(error)
    return error
  })
}

/** Returns the answer attached to an error by clients that throw on a status. */
export function responseOf(error: unknown): object | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const response: unknown = Reflect.get(error, 'response')
  return typeof response === 'object' && response !== null ? response : undefined
}
