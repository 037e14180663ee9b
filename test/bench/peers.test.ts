import fastifyRateLimit, { type RateLimitPluginOptions } from '@fastify/rate-limit'
import express, { type RequestHandler } from 'express'
import { rateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { serve } from '../admin/serve.ts'

// What docs/migrating.md says of the peers, where it could change with a new version of them.

afterEach(() => void vi.useRealTimers())

describe('express-rate-limit', () => {
  it('lets everything pass when a function finds NaN for a limit', async () => {
    const url = await guarded(rateLimit({ limit: () => Number.NaN }))
    const statuses = [(await fetch(url)).status, (await fetch(url)).status]
    expect(statuses).toEqual([200, 200])
  })

  it('sends no Retry-After without rate-limit headers', async () => {
    const url = await guarded(rateLimit({ limit: 1, legacyHeaders: false }))
    await fetch(url)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.has('retry-after')).toBe(false)
  })

  it('counts preflights, and what a limiter after it denies', async () => {
    const url = await guarded(
      rateLimit({ limit: 5 }),
      rateLimit({ limit: 1, legacyHeaders: false }),
    )
    const preflight = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
    await fetch(url, { method: 'OPTIONS', headers: preflight })
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('3')
  })
})

describe('@fastify/rate-limit', () => {
  it('counts the routes of a group, and GET and HEAD of a route, apart', async () => {
    const config = { rateLimit: { max: 1, groupId: 'both' } }
    const ask = await limited({ max: 100 }, { '/a': config, '/b': config })
    expect((await ask('/a')).statusCode).toBe(200)
    expect((await ask('/b')).statusCode).toBe(200)
    expect((await ask('/a', 'HEAD')).statusCode).toBe(200)
    expect((await ask('/a')).statusCode).toBe(429)
  })

  it('does not limit unknown URLs', async () => {
    const ask = await limited({ max: 1 })
    const answers = [await ask('/nowhere'), await ask('/nowhere')]
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404])
  })

  it('tells of a full quota when the store fails and errors are skipped', async () => {
    class Broken {
      incr(_key: string, callback: (error: Error) => void): void {
        callback(new Error('away'))
      }
      child(): Broken {
        return this
      }
    }
    const ask = await limited({ max: 7, store: Broken, skipOnError: true })
    expect((await ask('/')).headers['x-ratelimit-remaining']).toBe('7')
  })

  it('answers 403 from the denial after so many on', async () => {
    const ask = await limited({ max: 1, ban: 1 })
    const statuses: number[] = []
    for (let i = 0; i < 4; i += 1) statuses.push((await ask('/')).statusCode)
    expect(statuses).toEqual([200, 429, 403, 403])
  })

  it('tells of a backoff that its local store does not enforce', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ask = await limited({ max: 1, timeWindow: 1_000, exponentialBackoff: true })
    for (let i = 0; i < 5; i += 1) await ask('/')
    expect((await ask('/')).headers['retry-after']).toBe('16')
    vi.setSystemTime(Date.now() + 1_000)
    expect((await ask('/')).statusCode).toBe(200)
  })
})

describe('rate-limiter-flexible', () => {
  it('takes from the limiters of a union that have room when another denies', async () => {
    const narrow = new RateLimiterMemory({ keyPrefix: 'narrow', points: 1, duration: 60 })
    const wide = new RateLimiterMemory({ keyPrefix: 'wide', points: 100, duration: 60 })
    const union = new RateLimiterUnion(narrow, wide)
    await union.consume('ada')
    await expect(union.consume('ada')).rejects.toHaveProperty('narrow')
    expect(await wide.get('ada')).toMatchObject({ consumedPoints: 2 })
  })

  it('counts denied requests, and takes NaN and negative points', async () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60 })
    await limiter.consume('ada')
    await expect(limiter.consume('ada')).rejects.toMatchObject({ consumedPoints: 2 })
    expect(await limiter.reward('bob', 5)).toMatchObject({ remainingPoints: 6 })
    await limiter.consume('eve', Number.NaN)
    await limiter.consume('eve', 1_000)
  })
})

function guarded(...guards: RequestHandler[]): Promise<string> {
  const app = express()
  for (const guard of guards) app.use(guard)
  app.use((_request, response) => void response.send('ok'))
  return serve(app)
}

/** An application with routes that have configurations of their own. @returns what asks it */
async function limited(
  options: RateLimitPluginOptions,
  routes: Record<string, object> = { '/': {} },
) {
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(fastifyRateLimit, options)
  for (const [path, config] of Object.entries(routes)) app.get(path, { config }, async () => 'ok')
  return (url: string, method: 'GET' | 'HEAD' = 'GET') => app.inject({ method, url })
}
