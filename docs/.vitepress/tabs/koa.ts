import { type Framework, forward, logins, type Shell, uploads, users } from './framework.ts'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { … } from '@sluice/koa'
import Koa${planOf && ', { type Context }'} from 'koa'

${users}

export const app = new Koa()
app.use(async (context, next) => {
  // Your authentication.
  context.state.user = users.get(context.get('x-api-key'))
  await next()
})

const account = user((context) => context.state.user?.id)
${planOf}${limit}
app.use(limit)
app.use((context) => {
  context.body = []
})
`

export const koa: Framework = {
  title: 'Koa',
  shells: {
    user: byUser(),
    plans: byUser('const planOf = (context: Context) => context.state.user?.plan\n'),
    login: (limit) => `import { json } from 'node:stream/consumers'
import Router from '@koa/router'
import { … } from '@sluice/koa'
import Koa from 'koa'

${logins}

export const app = new Koa()
app.use(async (context, next) => {
  // Your body parser.
  context.state.login = await json(context.req).catch(() => undefined)
  await next()
})

const account = user((context) => accountOf(context.state.login))
${limit}
const router = new Router()
router.post('/login', limit, async (context) => {
  const isIn = await isRight(context.state.login)
  context.status = isIn ? 200 : 401
  context.body = isIn ? { ok: true } : { error: 'wrong name or password' }
})
app.use(router.routes())
`,
    upload: (limit) => `import Router from '@koa/router'
import { … } from '@sluice/koa'
import Koa, { type Context } from 'koa'

${uploads}

const bytes = (context: Context) => Number(context.get('content-length') || 1)
${limit}
const router = new Router()
router.put('/files/:name', limit, async (context) => {
  if (!context.get('content-length')) context.throw(411)
  const saved = await save(context.req)
  context.status = 201
  context.body = { saved }
})

export const app = new Koa()
app.use(router.routes())
`,
    proxy: (limit) => `import { type IncomingMessage, request } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { … } from '@sluice/koa'
import Koa from 'koa'

${forward}

export const app = new Koa()
app.proxy = true
app.maxIpsCount = 1 // your load balancer appends one address
${limit}
app.use(limit)
app.use(async (context) => {
  const answer = await forward(context.req, context.ip)
  context.respond = false
  context.res.writeHead(answer.statusCode ?? 502, answer.headers)
  await pipeline(answer, context.res)
})
`,
    test: (body) => `import { it } from 'node:test'
import { … } from '@sluice/koa'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'
import Koa from 'koa'
import request from 'supertest'

const app = new Koa() // import yours
app.use(rateLimit({ limit: 1, window: '1m' }))
app.use((context) => {
  context.body = 'hello'
})

const get = () => request(app.callback()).get('/')

${body}`,
  },
}
