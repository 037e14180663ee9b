import { type Framework, forward, logins, type Shell, uploads, users } from './framework.ts'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { … } from '@sluice/express'
import express${planOf && ', { type Request }'} from 'express'

${users}

export const app = express()
app.use((request, response, next) => {
  // Your authentication.
  response.locals.user = users.get(request.get('x-api-key') ?? '')
  next()
})

const account = user((request) => request.res?.locals.user?.id)
${planOf}${limit}
app.use(limit)
app.get('/items', (_request, response) => void response.json([]))
`

export const express: Framework = {
  title: 'Express',
  shells: {
    user: byUser(),
    plans: byUser('const planOf = (request: Request) => request.res?.locals.user?.plan\n'),
    login: (limit) => `import { … } from '@sluice/express'
import express from 'express'

${logins}

export const app = express()
app.use(express.json())

const account = user((request) => accountOf(request.body))
${limit}
app.post('/login', limit, async (request, response) => {
  if (await isRight(request.body)) response.json({ ok: true })
  else response.status(401).json({ error: 'wrong name or password' })
})
`,
    upload: (limit) => `import { … } from '@sluice/express'
import express, { type Request } from 'express'

${uploads}

export const app = express()
const bytes = (request: Request) => Number(request.get('content-length') ?? 1)
${limit}
app.put('/files/:name', limit, async (request, response) => {
  if (!request.get('content-length')) response.sendStatus(411)
  else response.status(201).json({ saved: await save(request) })
})
`,
    proxy: (limit) => `import { type IncomingMessage, request } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { … } from '@sluice/express'
import express from 'express'

${forward}

export const app = express()
app.set('trust proxy', 1) // one load balancer
${limit}
app.use(limit)
app.use(async (incoming, response) => {
  const answer = await forward(incoming, incoming.ip)
  response.writeHead(answer.statusCode ?? 502, answer.headers)
  await pipeline(answer, response)
})
`,
    test: (body) => `import { it } from 'node:test'
import { … } from '@sluice/express'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'
import express from 'express'
import request from 'supertest'

const app = express() // import yours
app.use(rateLimit({ limit: 1, window: '1m' }))
app.get('/', (_request, response) => void response.send('hello'))

const get = () => request(app).get('/')

${body}`,
  },
}
