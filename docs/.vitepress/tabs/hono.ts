import { type Framework, logins, type Shell, uploads, users } from './framework.ts'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { … } from '@sluice/hono'
import { ${planOf && 'type Context, '}Hono } from 'hono'

${users}

export const app = new Hono<{ Variables: { user: User | undefined } }>()
app.use(async (c, next) => {
  // Your authentication.
  c.set('user', users.get(c.req.header('x-api-key') ?? ''))
  await next()
})

const account = user((c) => c.get('user')?.id)
${planOf}${limit}
app.use(limit)
app.get('/items', (c) => c.json([]))
`

export const hono: Framework = {
  title: 'Hono',
  shells: {
    user: byUser(),
    plans: byUser("const planOf = (c: Context) => c.get('user')?.plan\n"),
    login: (limit) => `import { … } from '@sluice/hono'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'

${logins}

export const app = new Hono()
const bodyOf = (c: Context) => c.req.json().catch(() => undefined)
const account = user(async (c) => accountOf(await bodyOf(c)))
${limit}
app.post('/login', bodyLimit({ maxSize: 10_000 }), limit, async (c) => {
  if (await isRight(await bodyOf(c))) return c.json({ ok: true })
  return c.json({ error: 'wrong name or password' }, 401)
})
`,
    upload: (limit) => `import { … } from '@sluice/hono'
import { type Context, Hono } from 'hono'

${uploads}

export const app = new Hono()
const bytes = (c: Context) => Number(c.req.header('content-length') ?? 1)
${limit}
app.put('/files/:name', limit, async (c) => {
  if (!c.req.header('content-length')) return c.body(null, 411)
  return c.json({ saved: await save(c.req.raw.body ?? []) }, 201)
})
`,
    proxy: (limit) => `import { getConnInfo } from '@hono/node-server/conninfo'
import { … } from '@sluice/hono'
import { type Context, Hono } from 'hono'
import { proxy } from 'hono/proxy'

const upstream = process.env.UPSTREAM ?? 'http://localhost:4000'

/** The addresses of your load balancer. */
const trusted = new Set(['127.0.0.1', '::ffff:127.0.0.1'])

/** The load balancer appends the address. Clients can make up all other entries. */
function addressOf(c: Context): string | undefined {
  const { address } = getConnInfo(c).remote
  if (!trusted.has(address ?? '')) return address
  return c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim() ?? address
}

export const app = new Hono()
${limit.replace('{ ', '{ addressOf, ')}
app.use(limit)
app.all('*', (c) => {
  const { pathname, search } = new URL(c.req.url)
  return proxy(upstream + pathname + search, {
    ...c.req,
    headers: { ...c.req.header(), 'x-forwarded-for': addressOf(c) },
  })
})
`,
    test: (body) => `import { it } from 'node:test'
import { … } from '@sluice/hono'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'
import { Hono } from 'hono'

const app = new Hono() // import yours
app.use(rateLimit({ limit: 1, window: '1m' }))
app.get('/', (c) => c.text('hello'))

const client = { incoming: { socket: { remoteAddress: '203.0.113.1' } } }
const get = () => app.request('/', {}, client)

${body}`,
  },
}
