import type { GuardFields, Hold, HttpRequest, HttpResponse, Passage } from '@sluice/http'
import { createGuard } from '@sluice/http/adapter'

export const exactRouting = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
}

export function guardOf(options: GuardFields<object>) {
  return createGuard<object>(options, { where: 'rateLimit', routing: exactRouting })
}

export function exchange(view: Partial<HttpRequest> = {}, scope = '') {
  const fields = new Map<string, string>()
  const response: HttpResponse = {
    headersSent: false,
    getHeaderNames: () => [...fields.keys()].map((name) => name.toLowerCase()),
    getHeader: (name) =>
      [...fields].find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1],
    setHeader: (name, value) => void fields.set(name, value),
    removeHeader: (name) => void fields.delete(name),
  }
  const request: HttpRequest = {
    method: 'GET',
    path: '/',
    route: undefined,
    ip: '203.0.113.9',
    header: () => undefined,
    ...view,
  }
  const held: Hold[] = []
  const settleAtEnd = (hold: Hold) => void held.push(hold)
  /** The response is sent with this status, or its client leaves. */
  const end = (status?: number) => {
    for (const hold of held)
      if (status === undefined) hold.abort()
      else hold.finish(status)
  }
  return { native: {}, request, response, scope, fields, settleAtEnd, held, end }
}

/** The passage of a guard in which nothing is async. */
export function now(passage: Passage | Promise<Passage>): Passage {
  if (passage instanceof Promise) throw new Error('a promise')
  return passage
}
