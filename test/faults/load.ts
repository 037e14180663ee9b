import { Agent, get } from 'node:http'
import type { Framework, Route } from './api-messages.ts'
import type { Fleet } from './fleet.ts'
import { monotonicMs } from './timing.ts'

const TICK_MS = 10
const ANSWER_TIMEOUT_MS = 10_000
/** All but one of so many requests are for one key, and more than its limit allows; the rest stay far below theirs. */
const HOT_OF = 5
const QUIET_KEYS = 7

export interface Sample {
  readonly id: number
  readonly framework: Framework
  readonly instance: number
  readonly route: Route
  readonly key: string
  /** 0: it was not answered. */
  status: number
  retryAfter: string | undefined
}

export interface Stream {
  readonly fleet: Fleet
  readonly route: Route
  readonly perSecond: number
}

let lastId = 0

export function hotKey(route: Route): string {
  return `hot-${route}`
}

/** Sends requests at fixed rates, whether the ones before were answered or not, to the processes of each fleet in turn. */
export function startLoad(streams: readonly Stream[]) {
  const samples: Sample[] = []
  const underWay = new Set<Promise<void>>()
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const startedAt = monotonicMs()
  const sent = streams.map(() => 0)

  const timer = setInterval(() => {
    const elapsedMs = monotonicMs() - startedAt
    for (const [index, stream] of streams.entries()) {
      const due = Math.floor((elapsedMs * stream.perSecond) / 1_000)
      for (let number = sent[index] ?? 0; number < due; number += 1) send(stream, number)
      sent[index] = due
    }
  }, TICK_MS)

  function send({ fleet, route }: Stream, number: number): void {
    const { apis } = fleet
    const key = keyOf(route, number, apis.length)
    const question = { instance: number % apis.length, route, key }
    const { sample, answered } = ask(fleet, question, agent)
    samples.push(sample)
    const done = answered.then(() => void underWay.delete(done))
    underWay.add(done)
  }

  return {
    samples,
    async stop() {
      clearInterval(timer)
      await Promise.all(underWay)
      agent.destroy()
    },
  }
}

/** Sends one request to one process of a fleet, and resolves when it is answered or never will be. */
export function ask(
  { apis, settings: { framework } }: Fleet,
  question: Pick<Sample, 'instance' | 'route' | 'key'>,
  agent?: Agent,
) {
  const { instance, route, key } = question
  lastId += 1
  const sample: Sample = { id: lastId, framework, ...question, status: 0, retryAfter: undefined }
  const answered = new Promise<void>((resolve) => {
    const request = get(
      {
        ...{ host: '127.0.0.1', port: apis[instance]?.port, path: `/${route}`, agent },
        headers: { 'x-api-key': key, 'x-request-id': String(sample.id) },
        timeout: ANSWER_TIMEOUT_MS,
      },
      (response) => {
        const { statusCode: status = 0, headers } = response
        response.resume().once('error', () => resolve())
        response.once('end', () => {
          Object.assign(sample, { status, retryAfter: headers['retry-after'] })
          resolve()
        })
      },
    )
    request.once('timeout', () => request.destroy(new Error('timed out')))
    request.once('error', () => resolve())
  })
  return { sample, answered }
}

/** Spread so that every process gets the same share of hot and quiet requests. */
function keyOf(route: Route, number: number, instances: number): string {
  const round = Math.floor(number / instances)
  return round % HOT_OF === 0 ? `quiet-${route}-${number % QUIET_KEYS}` : hotKey(route)
}
