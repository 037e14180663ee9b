import {
  type Framework,
  forward,
  logins,
  optionsOf,
  type Shell,
  uploads,
  users,
} from './framework.ts'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { … } from '@sluice/fastify'
import fastify, { type FastifyRequest } from 'fastify'

${users}

export const app = fastify()
app.decorateRequest('user')
app.addHook('onRequest', async (request) => {
  // Your authentication.
  const key = String(request.headers['x-api-key'] ?? '')
  request.setDecorator('user', users.get(key))
})

function userOf(request: FastifyRequest): User | undefined {
  return request.getDecorator('user')
}
const account = user((request) => userOf(request)?.id)
// Runs after the hook above.
${planOf}await app.register(rateLimitPlugin, ${optionsOf(limit)})
app.get('/items', async () => [])
`

/** A limit that routes can name as a hook. */
const hook = (limit: string): string => `await app.register(rateLimitPlugin, { global: false })
${limit.replace('rateLimit(', 'app.rateLimit(')}`

export const fastify: Framework = {
  title: 'Fastify',
  shells: {
    user: byUser(),
    plans: byUser('const planOf = (request: FastifyRequest) => userOf(request)?.plan\n'),
    login: (limit) => `import { … } from '@sluice/fastify'
import fastify from 'fastify'

${logins}

export const app = fastify()
const account = user((request) => accountOf(request.body))
${hook(limit)}
app.post('/login', { preHandler: limit }, async (request, reply) => {
  if (await isRight(request.body)) return { ok: true }
  return reply.code(401).send({ error: 'wrong name or password' })
})
`,
    upload: (limit) => `import { … } from '@sluice/fastify'
import fastify, { type FastifyRequest } from 'fastify'

${uploads}

export const app = fastify({ bodyLimit: 10_000_000 })
app.removeAllContentTypeParsers()
// The handler reads the body.
app.addContentTypeParser('*', (_request, _body, done) => done(null))

const bytes = ({ headers }: FastifyRequest) => Number(headers['content-length'] ?? 1)
${hook(limit)}
app.put('/files/:name', { onRequest: limit }, async (request, reply) => {
  if (!request.headers['content-length']) return reply.code(411).send()
  return reply.code(201).send({ saved: await save(request.raw) })
})
`,
    proxy: (limit) => `import { type IncomingMessage, request } from 'node:http'
import { … } from '@sluice/fastify'
import fastify from 'fastify'

${forward}

/** Trusts the addresses of your load balancer. */
export const app = fastify({ trustProxy: '127.0.0.1' })
app.removeAllContentTypeParsers()
// The proxy reads the body.
app.addContentTypeParser('*', (_request, _body, done) => done(null))

await app.register(rateLimitPlugin, ${optionsOf(limit)})
app.all('/*', async (incoming, reply) => {
  const answer = await forward(incoming.raw, incoming.ip)
  return reply
    .code(answer.statusCode ?? 502)
    .headers(answer.headers)
    .send(answer)
})
`,
    test: (body) => `import { it } from 'node:test'
import { … } from '@sluice/fastify'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'
import fastify from 'fastify'

const app = fastify() // import yours
await app.register(rateLimitPlugin, { limit: 1, window: '1m' })
app.get('/', async () => 'hello')

const get = () => app.inject('/')

${body}`,
  },
}
