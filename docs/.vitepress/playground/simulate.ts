import { createLimiter, type Decision, durationMs, isSluiceError, memoryStore } from '@sluice/core'
import { formatHeaders } from '@sluice/headers'

/** Concurrency is left out: traffic here has no durations. */
export const algorithms = [
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
] as const

/** The policy of one lane. */
export interface Lane {
  readonly algorithm: (typeof algorithms)[number]
  readonly limit: number
  readonly window: string
}

/** One request of the traffic. */
export interface Arrival {
  readonly atMs: number
  /** The client. */
  readonly key: string
}

export interface Run {
  /** One for each request. */
  readonly decisions: readonly Decision[]
  readonly allowed: number
  /** The most units that one client got in any rolling window. */
  readonly most: number
  readonly windowMs: number
}

/**
 * Decides traffic with the limiter and the memory store that applications use, at the times of the
 * traffic.
 * @returns a text if the policy is not valid
 */
export async function simulate(lane: Lane, traffic: readonly Arrival[]): Promise<Run | string> {
  const { now } = Date
  const asked: Promise<Decision>[] = []
  try {
    const { algorithm, limit } = lane
    const window = durationMs(lane.window, 'window')
    const limiter = createLimiter({ algorithm, limit, window, store: memoryStore() })
    let nowMs = 0
    // The memory store reads the clock, and decides, before `consume` returns.
    Object.assign(Date, { now: () => nowMs })
    for (const { atMs, key } of traffic) {
      nowMs = atMs
      asked.push(limiter.consume(key))
    }
    const windowMs = limiter.policies[0]?.windowMs ?? 0
    Object.assign(Date, { now })
    const decisions = await Promise.all(asked)
    const passed = traffic.flatMap(({ atMs, key }, index) => {
      const decision = decisions[index]
      return decision?.allowed ? [{ atMs: atMs + decision.delayMs, key }] : []
    })
    return { decisions, allowed: passed.length, most: mostIn(windowMs, passed), windowMs }
  } catch (error) {
    if (isSluiceError(error)) return error.message
    throw error
  } finally {
    Object.assign(Date, { now })
  }
}

/** The most requests of one client in any rolling window. */
function mostIn(windowMs: number, passed: readonly Arrival[]): number {
  const byKey = new Map<string, number[]>()
  let most = 0
  for (const { atMs, key } of passed) {
    const times = byKey.get(key) ?? []
    byKey.set(key, times)
    times.push(atMs)
    while ((times[0] ?? atMs) <= atMs - windowMs) times.shift()
    most = Math.max(most, times.length)
  }
  return most
}

/** The response of the limiter to a request, and what the client should do next. */
export function answerOf({ allowed, outcomes, delayMs }: Decision, nowMs: number) {
  const states = outcomes.map(({ policy, allowed, ...state }) => ({
    ...{ name: 'default', windowMs: policy.windowMs, denied: !allowed, cost: 1 },
    ...{ limit: state.limit, remaining: state.remaining, resetMs: state.resetMs },
    retryAfterMs: state.retryAfterMs,
  }))
  const fields = formatHeaders(states, {
    ...{ dialects: ['draft-11', 'legacy'], nowMs, rejected: !allowed },
  })
  const status = allowed ? '200 OK' : '429 Too Many Requests'
  const retryAfter = fields.find(([name]) => name === 'Retry-After')?.[1]
  const [first] = outcomes
  return {
    text: [`HTTP/1.1 ${status}`, ...fields.map((field) => field.join(': '))].join('\n'),
    advice: allowed
      ? `${delayMs > 0 ? `The server holds it for ${secondsText(delayMs)}. ` : ''}The client has ${first?.remaining ?? 0} left.`
      : retryAfter === undefined
        ? 'Don’t retry: waiting cannot help.'
        : `Wait ${retryAfter} s, then send it again. Earlier retries are refused too.`,
  }
}

export function secondsText(ms: number): string {
  return `${Number((ms / 1_000).toFixed(3))} s`
}
