import { request as httpRequest, type Server } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Answer {
  readonly status: number
  /** Field lines as they came, names in lower case: a field that came twice is there twice. */
  readonly lines: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** The only line of a field; throws when there are several. */
  field(name: string): string | undefined
}

export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** The local address to ask from: 127.0.0.2 is another client than 127.0.0.1. */
  readonly from?: string
  /** Aborted: the client leaves. */
  readonly signal?: AbortSignal
}

/** Asks a server, with the path exactly as it is given: `fetch` would tidy it. */
export async function ask(port: number, path = '/', question: Question = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body: sent, from, signal } = question
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, agent: false }
    const more = { ...(from ? { localAddress: from } : {}), ...(signal ? { signal } : {}) }
    httpRequest({ ...options, ...more }, resolve)
      .once('error', reject)
      .end(sent)
  })
  const body = await text(response)
  const lines = pairs(response.rawHeaders)
  return {
    status: response.statusCode ?? 0,
    lines,
    body,
    field(name) {
      const values = lines.filter(([other]) => other === name.toLowerCase())
      if (values.length > 1) throw new Error(`${name} came ${values.length} times`)
      return values[0]?.[1]
    },
  }
}

/** Whether every client has left; each question has a connection of its own. */
export function noneIsConnected(server: Server): Promise<boolean> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count === 0)))
}

/** The fields that a limiter may set, under the names of an Answer. */
export function limitFields({ lines }: Answer): Record<string, string> {
  const pattern = /^(x-)?ratelimit|^retry-after$/
  return Object.fromEntries(lines.filter(([name]) => pattern.test(name)))
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  const lines: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    lines.push([(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? ''])
  }
  return lines
}
