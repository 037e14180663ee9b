import type { Decision } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import { until } from '../../support/until.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import type { Answer } from '../ask.ts'
import type { Limits } from '../drivers/driver.ts'

/** The clock of the store stands still, so that delays are exact; requests are held in real time. */
const queue = { algorithm: 'leaky-bucket', limit: 1, key: () => 'ada' } as const

/** Requests that are held until their turn. */
export const queues: Behaviour = ({ start }) => {
  /** An application with one queue, and what became of each request. */
  async function queued(limits: Limits, more: readonly Limits[] = []) {
    const decisions: Decision[] = []
    const reached = vi.fn()
    const onDecision = ({ decision }: { decision: Decision }) => void decisions.push(decision)
    const app = await start({
      limits: [{ ...limits, observers: { onDecision } }, ...more],
      routes: [{ path: '/', reached: () => reached(performance.now()) }],
    })
    return { app, decisions, reached, delays: () => decisions.map(({ delayMs }) => delayMs) }
  }

  /** Asks, and returns when the request is decided. */
  async function asked(
    { app, decisions }: { app: App; decisions: readonly Decision[] },
    signal?: AbortSignal,
  ): Promise<{ answer: Promise<Answer> }> {
    const before = decisions.length
    const answer = app.ask('/', signal ? { signal } : {})
    answer.catch(() => undefined)
    await until('it is decided', () => decisions.length > before)
    return { answer }
  }

  it('releases requests one by one, in order of arrival', async () => {
    const subject = await queued({ ...queue, window: 40 })
    const order: number[] = []
    const began = performance.now()
    const answers: Promise<unknown>[] = []
    for (let i = 0; i < 5; i += 1) {
      const { answer } = await asked(subject)
      answers.push(answer.then(() => order.push(i)))
    }
    await Promise.all(answers)

    expect(subject.delays()).toEqual([0, 40, 80, 120, 160])
    expect(order).toEqual([0, 1, 2, 3, 4])
    for (const [index, [at]] of subject.reached.mock.calls.entries()) {
      // A timer may fire a millisecond early by another clock.
      expect(at - began).toBeGreaterThanOrEqual((subject.delays()[index] ?? 0) - 1.5)
    }
  })

  it('drops a client that leaves the queue, and wastes its turn', async () => {
    // Long enough that the client has left before its turn, on a slow machine too.
    const subject = await queued({ ...queue, window: 400, maxWaiting: 1 })
    await asked(subject)
    const client = new AbortController()
    const { answer } = await asked(subject, client.signal)
    client.abort()
    await expect(answer).rejects.toThrow()

    // There is one seat: it was left, once the server has noticed.
    let next = await subject.app.ask()
    await until('the answer is 503', async () => {
      if (next.status === 503) next = await subject.app.ask()
      return next.status === 200
    })

    expect(subject.delays().slice(0, 2)).toEqual([0, 400])
    expect(subject.delays().at(-1)).toBe(800)
    expect(subject.reached).toHaveBeenCalledTimes(2)
  })

  it('runs a later limiter after the wait, and holds other units from arrival', async () => {
    const fixed = { limit: 5, window: '1m', algorithm: 'fixed-window', key: queue.key } as const
    const policies = [
      { ...queue, window: 150 },
      { name: 'sum', ...fixed },
    ]
    const later = vi.fn()
    const subject = await queued({ policies }, [
      { name: 'later', ...fixed, observers: { onDecision: later } },
    ])
    await subject.app.ask()
    const { answer } = await asked(subject)

    expect(subject.decisions.at(-1)?.outcomes[1]?.remaining).toBe(3)
    expect(later).toHaveBeenCalledTimes(1)
    expect((await answer).field('ratelimit')).toContain('"later";r=3')
    expect(later).toHaveBeenCalledTimes(2)
  })
}
