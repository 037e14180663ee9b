import { createLimiter, memoryStore, type Reservation } from '@sluice/core'
import { expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import type { LimitedRequest, Limits, Route } from '../drivers/driver.ts'

const tokens = { name: 'tokens', limit: 100, window: '1m', reserve: true } as const
const money = { name: 'money', limit: 10_000, window: '1h', reserve: true } as const

/** The units that a request asks for. */
const asked = ({ headers }: LimitedRequest): number => Number(headers['x-units'] ?? 40)

/** Units that are held while a request runs, and spent by its handler. */
export const budgets: Behaviour = ({ start }) => {
  async function serve(
    work: Route['reached'],
    { limits = { ...tokens, reserve: asked }, streams = false }: Serving = {},
  ) {
    const store = memoryStore()
    const limiter = createLimiter({ policies: [tokens, money], store })
    const app = await start({
      limits: [{ ...limits, store, key: () => 'ada' }],
      routes: [{ path: '/', streams, ...(work && { reached: work }) }],
    })
    async function used(index = 0): Promise<number> {
      const [outcome] = (await limiter.peek('ada')).outcomes.slice(index)
      return (outcome?.limit ?? 0) - (outcome?.remaining ?? 0)
    }
    const comesTo = (units: number, index?: number) =>
      until('the budget is settled', async () => (await used(index)) === units)
    return { app, used, comesTo }
  }

  it('holds units while a request runs, and shows them in the fields', async () => {
    const during: number[] = []
    const { app, used, comesTo } = await serve(async ({ rateLimit }) => {
      during.push(await used())
      expect(rateLimit?.spend(15)).toBe(true)
      expect(rateLimit?.budget()).toMatchObject({ left: 25, spent: 15 })
    })
    const answer = await app.ask()

    expect(answer.status).toBe(200)
    expect(limitFields(answer)).toMatchObject({ ratelimit: expect.stringMatching(/;r=60;t=/) })
    expect(during).toEqual([40])
    await comesTo(15)
  })

  it('holds units until a stream has ended', async () => {
    let budget: Reservation | undefined
    let end = (): void => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const work = async ({ rateLimit }: LimitedRequest) => {
      budget = rateLimit?.budget()
      budget?.spend(5)
      await ended
      budget?.spend(7)
    }
    const { app, used, comesTo } = await serve(work, { streams: true })
    const answer = app.ask()
    await until('the stream has begun', () => budget?.spent === 5)
    expect(await used()).toBe(40)
    end()
    expect((await answer).body).toContain('hello')
    await comesTo(12)
    expect(budget?.spend(1)).toBe(false)
  })

  it.each([false, true])(
    'ends when the client leaves, and tells the work (stream: %s)',
    async (streams) => {
      let budget: Reservation | undefined
      const work = async ({ rateLimit }: LimitedRequest) => {
        budget = rateLimit?.budget()
        budget?.spend(9)
        await until('the work is told', () => budget?.signal.aborted === true)
      }
      const { app, comesTo } = await serve(work, { streams })
      const client = new AbortController()
      const answer = app.ask('/', { signal: client.signal })
      answer.catch(() => undefined)
      await until('the work has begun', () => budget?.spent === 9)
      client.abort()
      await expect(answer).rejects.toThrow()
      await comesTo(9)
      expect(budget?.signal.aborted).toBe(true)
    },
  )
}

interface Serving {
  readonly limits?: Limits
  readonly streams?: boolean
}
