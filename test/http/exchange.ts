import type { GuardFields, Hold, HttpRequest, HttpResponse, Passage } from '@sluice/http'
import { createGuard } from '@sluice/http/adapter'
import { repeated } from '../support/in-turn.ts'

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

/** The request of a framework, as far as users' functions read it here. */
export interface Client {
  readonly headers: Readonly<Record<string, string>>
}

/** A guard, and what its clients get. The status is 200 where a request passes. */
export function clientsOf(options: GuardFields<Client>) {
  const guard = createGuard<Client>(options, { where: 'rateLimit', routing: exactRouting })
  async function ask(headers: Client['headers'] = {}, view: Partial<HttpRequest> = {}) {
    const asked = exchange({ header: (name) => headers[name], ...view })
    const { verdict, ...passage } = await guard.check({ ...asked, native: { headers } })
    const { status = 200, body = undefined } = verdict.action === 'reject' ? verdict : {}
    return {
      ...passage,
      status,
      body: body?.text ?? '',
      fields: Object.fromEntries(verdict.fields),
    }
  }
  const statuses = (count: number, ...asked: Parameters<typeof ask>) =>
    repeated(count, async () => (await ask(...asked)).status)
  return { guard, ask, statuses }
}

/** The passage of a guard in which nothing is async. */
export function now(passage: Passage | Promise<Passage>): Passage {
  if (passage instanceof Promise) throw new Error('a promise')
  return passage
}
