import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { rateLimit, tiers } from '@sluice/express'
import { rateLimitPlugin, tiers as tiersOf } from '@sluice/fastify'
import express, { type Request } from 'express'
import express4 from 'express4'
import fastify, { type FastifyRequest } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, limitFields } from './ask.ts'

/** Whoever asks, before it is known who it is; and who it is. */
const address = { name: 'address', limit: 8, window: '1m' } as const
const client = { name: 'client', window: '1m' } as const
const plans = { free: 2, paid: 5, default: 1 }

interface Authenticated {
  user?: { id: string; plan: string } | undefined
}

/** `ann:free` is Ann, who is on the plan 'free'. */
function authenticate(header: string | undefined): Authenticated['user'] {
  const [id = '', plan = ''] = header?.split(':') ?? []
  return id === '' ? undefined : { id, plan }
}

async function startExpress(framework: typeof express): Promise<number> {
  const app = framework()
  app.use(rateLimit(address))
  app.use((req: Request & Authenticated, res, next) => {
    req.user = authenticate(req.get('authorization'))
    if (req.user?.id === 'wrong') res.status(401).end()
    else next()
  })
  app.use(
    rateLimit({
      ...client,
      key: (req: Request & Authenticated) => req.user?.id,
      limit: tiers(plans, (req: Request & Authenticated) => req.user?.plan),
    }),
  )
  app.get('/', (_req, res) => void res.send('hello'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function startFastify(): Promise<number> {
  const app = fastify()
  await app.register(rateLimitPlugin, address)
  app.decorateRequest('user', undefined)
  app.addHook('preValidation', async (request: FastifyRequest & Authenticated, reply) => {
    request.user = authenticate(request.headers.authorization)
    if (request.user?.id === 'wrong') await reply.code(401).send()
  })
  await app.register(rateLimitPlugin, {
    ...client,
    hook: 'preHandler',
    key: (request: FastifyRequest & Authenticated) => request.user?.id,
    limit: tiersOf(plans, (request: FastifyRequest & Authenticated) => request.user?.plan),
  })
  app.get('/', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  return (app.server.address() as AddressInfo).port
}

describe.each([
  ['Express 4', () => startExpress(express4)],
  ['Express 5', () => startExpress(express)],
  ['Fastify 5', startFastify],
])('two guards in %s, one before and one after authentication', (_, start) => {
  async function asker() {
    const port = await start()
    return (authorization?: string) =>
      ask(port, '/', authorization ? { headers: { authorization } } : {})
  }

  it('tell of both policies on one response, each once', async () => {
    const answer = await (await asker())('ann:free')

    expect(answer.field('ratelimit-policy')).toBe('"address";q=8;w=60, "client";q=2;w=60')
    expect(answer.field('ratelimit')).toBe('"address";r=7;t=60, "client";r=1;t=60')
    expect(answer.field('x-ratelimit-limit')).toBe('2')
    expect(answer.field('x-ratelimit-remaining')).toBe('1')
  })

  it('limit each client by its tier, and the anonymous by their address', async () => {
    const as = await asker()
    const statuses = []
    for (const who of ['ann:free', 'ann:free', 'ann:free', undefined, undefined, 'bob:paid']) {
      statuses.push((await as(who)).status)
    }
    expect(statuses).toEqual([200, 200, 429, 200, 429, 200])
    // Who pays meanwhile goes on with what is counted.
    expect((await as('ann:paid')).field('ratelimit')).toMatch(/"client";r=2;/)
  })

  it('refuse an address before anybody looks at who it is, and charge it for wrong credentials', async () => {
    const as = await asker()
    const statuses = []
    for (let i = 0; i < 9; i += 1) statuses.push((await as('wrong:free')).status)
    expect(statuses).toEqual([...Array(8).fill(401), 429])

    const refused = await as('ann:free')
    expect(refused.status).toBe(429)
    expect(limitFields(refused)['ratelimit-policy']).toBe('"address";q=8;w=60')
    expect(JSON.parse(refused.body)['violated-policies']).toEqual(['address'])
  })
})
