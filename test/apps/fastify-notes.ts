import { randomUUID } from 'node:crypto'
import peerPlugin from '@fastify/rate-limit'
import type { Store } from '@sluice/core'
import { firstOf, ip, rateLimitPlugin, user } from '@sluice/fastify'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'

/** The limits of the service: the plugin, and the options of single routes. */
export interface NotesLimits {
  register(app: FastifyInstance): PromiseLike<unknown>
  readonly login: object
  readonly upload: object
  readonly admin: object
}

const passwords: Readonly<Record<string, string>> = { ada: 'correct horse', root: 'battery staple' }
const sessions = new Map<string, string>()

function userOf({ headers }: FastifyRequest): string | undefined {
  const [, id = ''] = /^Bearer ([\w-]+)$/.exec(headers.authorization ?? '') ?? []
  return sessions.get(id)
}

/** A service of notes: sessions by token, uploads, an admin area, and webhooks. */
export async function createNotes({ register, login, upload, admin }: NotesLimits) {
  const app = fastify({ trustProxy: 'loopback', bodyLimit: 100_000 })
  await register(app)
  const types = ['text/plain', 'image/png']
  app.addContentTypeParser(types, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  app.get('/health', { config: { rateLimit: false } }, async () => ({ ok: true }))
  app.post<{ Body: Buffer }>(
    '/webhooks/calendar',
    { config: { rateLimit: false } },
    async ({ body }) => ({ bytes: body.length }),
  )

  app.post<{ Body: { name: string; password: string } }>(
    '/login',
    { config: { rateLimit: login } },
    async ({ body }, reply) => {
      if (passwords[body.name] !== body.password) return reply.code(401).send({ error: 'wrong' })
      const token = randomUUID()
      sessions.set(token, body.name)
      return { token }
    },
  )

  await app.register(async (part) => {
    part.addHook('preHandler', async (request, reply) => {
      if (!userOf(request)) return reply.code(401).send({ error: 'sign in first' })
    })
    part.get('/notes', async (request) => [`buy milk, ${userOf(request)}`])
    part.post<{ Body: Buffer }>(
      '/pictures',
      { config: { rateLimit: upload } },
      async ({ body }, reply) => reply.code(201).send({ bytes: body.length }),
    )
  })

  await app.register(
    async (part) => {
      part.addHook('preHandler', async (request, reply) => {
        if (userOf(request) !== 'root') return reply.code(403).send({ error: 'admins only' })
      })
      part.get('/users', { config: { rateLimit: admin } }, async () => Object.keys(passwords))
    },
    { prefix: '/admin' },
  )
  return app
}

/** As the service had them. */
export const notesBefore: NotesLimits = {
  register: (app) =>
    app.register(peerPlugin, {
      ...{ max: 30, timeWindow: '1 minute' },
      keyGenerator: (request) => userOf(request) ?? request.ip,
      errorResponseBuilder: (_request, { statusCode, ttl }) => ({
        ...{ statusCode, error: 'slow down', seconds: Math.ceil(ttl / 1_000) },
      }),
    }),
  login: { max: 3, timeWindow: '15 minutes', keyGenerator: ({ ip }: FastifyRequest) => ip },
  upload: { max: 2, timeWindow: '1 hour' },
  admin: { max: 4, timeWindow: 60_000, groupId: 'admin' },
}

/** Moved by docs/migrating.md. @param store of all limiters @default memory */
export const notesAfter = (store?: Store): NotesLimits => ({
  register: (app) =>
    app.register(rateLimitPlugin, {
      ...{ limit: 30, window: '1m', store },
      key: firstOf(
        user((request: FastifyRequest) => userOf(request)),
        ip(),
      ),
      headers: ['legacy-delta'],
      message: (_request, { retryAfterMs }) => ({
        ...{ statusCode: 429, error: 'slow down', seconds: Math.ceil(retryAfterMs / 1_000) },
      }),
    }),
  login: { limit: 3, window: '15m', key: ip() },
  upload: { limit: 2, window: '1h' },
  admin: { limit: 4, window: '1m' },
})
