import { type Framework, logins, type Shell, uploads, users } from './framework.ts'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { … } from '@sluice/fetch'

${users}

/** Your authentication. */
const userOf = ({ headers }: Request) => users.get(headers.get('x-api-key') ?? '')

const account = user((request) => userOf(request)?.id)
${planOf}${limit}
export const handler = limit(() => Response.json([]))
`

export const fetch: Framework = {
  title: 'fetch',
  shells: {
    user: byUser(),
    plans: byUser('const planOf = (request: Request) => userOf(request)?.plan\n'),
    login: (limit) => `import { … } from '@sluice/fetch'

${logins}

const bodyOf = (request: Request) => request.json().catch(() => undefined)
const account = user(async (request) => accountOf(await bodyOf(request.clone())))
${limit}
export const handler = limit(async (request) => {
  const isIn = await isRight(await bodyOf(request))
  if (isIn) return Response.json({ ok: true })
  return Response.json({ error: 'wrong name or password' }, { status: 401 })
})
`,
    upload: (limit) => `import { … } from '@sluice/fetch'

${uploads}

const bytes = ({ headers }: Request) => Number(headers.get('content-length') ?? 1)
${limit}
export const handler = limit(async ({ headers, body }) => {
  if (!headers.get('content-length')) return new Response(null, { status: 411 })
  return Response.json({ saved: await save(body ?? []) }, { status: 201 })
})
`,
    proxy: (limit) => `import { type FetchInfo, … } from '@sluice/fetch'

const upstream = process.env.UPSTREAM ?? 'http://localhost:4000'

/** The addresses of your load balancer. */
const trusted = new Set(['127.0.0.1', '::ffff:127.0.0.1'])

/** The load balancer appends the address. Clients can make up all other entries. */
function addressOf({ headers }: Request, { remoteAddress }: FetchInfo) {
  if (!trusted.has(remoteAddress ?? '')) return remoteAddress
  const forwarded = headers.get('x-forwarded-for')
  return forwarded?.split(',').at(-1)?.trim() ?? remoteAddress
}

${limit.replace('{ ', '{ addressOf, ')}
export const handler = limit((request, info) => {
  const { pathname, search } = new URL(request.url)
  const headers = new Headers(request.headers)
  headers.set('x-forwarded-for', addressOf(request, info) ?? '')
  headers.set('accept-encoding', 'identity')
  const { method, body } = request
  const init = { method, headers, body, redirect: 'manual', duplex: 'half' } as const
  return fetch(upstream + pathname + search, init)
})
`,
    test: (body) => `import { it } from 'node:test'
import { … } from '@sluice/fetch'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'

const limit = rateLimit({ limit: 1, window: '1m' })
const handler = limit(() => new Response('hello')) // import yours

const client = { remoteAddress: '203.0.113.1' }
const get = () => handler(new Request('http://localhost/'), client)

${body}`,
  },
}
