import type { CallContext, CallOptions, OutboundFetchInit } from './outbound-options.ts'

/** A `fetch` as a call that waits for its turn. */
export interface FetchCall {
  readonly options: CallOptions
  readonly send: (context: CallContext) => Promise<Response>
}

export function fetchCall(input: string | URL | Request, init: OutboundFetchInit = {}): FetchCall {
  const { cost, priority, label, timeout, ...rest } = init
  const request = input instanceof Request ? input : undefined
  const url = new URL(request ? request.url : String(input))
  const method = rest.method ?? request?.method ?? 'GET'
  // `null` takes a signal away from a Request.
  const signal = rest.signal === undefined ? request?.signal : rest.signal
  return {
    options: {
      label: label ?? `${method} ${url.origin}${url.pathname}`,
      ...(cost === undefined ? {} : { cost }),
      ...(priority === undefined ? {} : { priority }),
      ...(timeout === undefined ? {} : { timeout }),
      ...(signal ? { signal } : {}),
    },
    send: (context) => fetch(request ?? url, { ...rest, signal: context.signal }),
  }
}
