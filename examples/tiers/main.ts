// Two guards: addresses before authentication, and clients after it, each with the limit of its tier.
import { rateLimit, tiers } from '@sluice/express'
import express, { type NextFunction, type Request, type Response } from 'express'

interface User {
  readonly id: string
  readonly plan: 'free' | 'premium'
}

/** A request with a known user. */
interface Authenticated extends Request {
  user?: User
}

// Stands in for a database.
const users = new Map<string, User>([
  ['token-of-ann', { id: 'ann', plan: 'free' }],
  ['token-of-bob', { id: 'bob', plan: 'premium' }],
])

function authenticate(request: Authenticated, response: Response, next: NextFunction): void {
  const [, token] = request.get('authorization')?.split('Bearer ') ?? []
  const user = token === undefined ? undefined : users.get(token)
  if (user) request.user = user
  if (user || token === undefined) next()
  else response.status(401).json({ error: 'unknown token' })
}

const app = express()

// First, every address: so that nobody can try endless tokens.
app.use(rateLimit({ name: 'address', limit: 100, window: '1m' }))

app.use(authenticate)

// Then, every client: users by id and plan, and anonymous clients, who have no key, by address.
app.use(
  rateLimit({
    name: 'client',
    window: '1m',
    key: (request: Authenticated) => request.user && `user:${request.user.id}`,
    limit: tiers(
      { free: 10, premium: 50, default: 3 },
      (request: Authenticated) => request.user?.plan,
    ),
  }),
)

app.get('/', (request: Authenticated, response) => {
  response.json({ hello: request.user?.id ?? 'stranger' })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  const address = server.address()
  console.log(`listening on ${typeof address === 'object' ? address?.port : address}`)
})
