import { randomUUID } from 'node:crypto'
import express, { type Request, type RequestHandler } from 'express'

/** What a limiter adds to the shop. */
export interface ShopLimits {
  readonly everywhere: RequestHandler
  readonly login: RequestHandler
  readonly upload: RequestHandler
  readonly admin: RequestHandler
}

interface Account {
  readonly name: string
  readonly password: string
  readonly role: 'customer' | 'admin'
}

const accounts: readonly Account[] = [
  { name: 'ada', password: 'correct horse', role: 'customer' },
  { name: 'root', password: 'battery staple', role: 'admin' },
]

const sessions = new Map<string, Account>()

/** The account of the session, if the request has one. */
export function accountOf(request: Request): Account | undefined {
  const [, id = ''] = /(?:^|; )sid=([\w-]+)/.exec(request.get('cookie') ?? '') ?? []
  return sessions.get(id)
}

/** A shop as many teams have one: sessions, uploads, an admin area, and webhooks. */
export function createShop({ everywhere, login, upload, admin }: ShopLimits) {
  const app = express()
  app.set('trust proxy', 1)
  app.use(everywhere)

  app.get('/health', (_request, response) => void response.json({ ok: true }))

  app.post('/webhooks/payment', express.raw({ type: '*/*' }), (request, response) => {
    response.json({ bytes: request.body.length })
  })

  app.use(express.json())
  app.post('/login', login, (request, response) => {
    const { name, password } = request.body ?? {}
    const account = accounts.find((each) => each.name === name && each.password === password)
    if (!account) {
      response.status(401).json({ error: 'wrong name or password' })
      return
    }
    const id = randomUUID()
    sessions.set(id, account)
    response.cookie('sid', id, { httpOnly: true, sameSite: 'lax' }).json({ name: account.name })
  })

  app.get('/products', (_request, response) => void response.json(['pen', 'ink', 'paper']))

  const signedIn: RequestHandler = (request, response, next) => {
    if (accountOf(request)) next()
    else response.status(401).json({ error: 'sign in first' })
  }
  const picture = express.raw({ type: 'image/*', limit: '1mb' })
  app.post('/pictures', signedIn, upload, picture, (request, response) => {
    response.status(201).json({ id: randomUUID(), bytes: request.body.length })
  })

  const area = express.Router()
  area.use(admin, (request, response, next) => {
    if (accountOf(request)?.role === 'admin') next()
    else response.status(403).json({ error: 'admins only' })
  })
  area.get('/accounts', (_request, response) => {
    response.json(accounts.map(({ name, role }) => ({ name, role })))
  })
  app.use('/admin', area)
  return app
}
