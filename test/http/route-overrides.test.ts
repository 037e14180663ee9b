import { memoryStore } from '@sluice/core'
import type { GuardOptions, RouteOverride } from '@sluice/http'
import { createGuard } from '@sluice/http/adapter'
import { describe, expect, it } from 'vitest'
import { exactRouting, exchange, now } from './exchange.ts'

type Options = GuardOptions<object, () => void>
type Override = RouteOverride<object, () => void>

const base = { limit: 5, window: '1m' } as const
const key = () => 'ada'

function guarded(around: Options, route: Override | string) {
  const options = { ...around, routes: { '/r': route } }
  return createGuard<object, () => void>(options, { where: 'rateLimit', routing: exactRouting })
}

/** What becomes of requests to the route, one after the other. */
function asked(around: Options, route: Override | string, count = 1) {
  const guard = guarded(around, route)
  return Array.from({ length: count }, () => {
    const at = exchange({ path: '/r' })
    const passage = now(guard.check(at) as never)
    for (const [name, value = ''] of passage.verdict.fields) at.fields.set(name, value)
    return { ...passage, at }
  })
}

function last(around: Options, route: Override | string, count = 1) {
  const found = asked(around, route, count).at(-1)
  if (!found) throw new Error('nothing was asked')
  const { verdict, decision, hold, at } = found
  const { status, body, handler } = verdict.action === 'reject' ? verdict : {}
  return { decision, hold, status, text: body?.text, handler, fields: at.fields }
}

const ours = () => undefined
const theirs = () => undefined
const zero = { ...base, limit: 0 }

type Seen = (around: Options, route: Override) => unknown
const answered: Seen = (o, r) => [last(o, r).text, last(o, r).handler]
const allowed: Seen = (o, r) => last(o, r).decision?.allowed
/** What is left after two requests. */
const left: Seen = (o, r) => last(o, r, 2).decision?.remaining
const policy: Seen = (o, r) => {
  const { limit, windowMs, algorithm } = last(o, r).decision?.policy ?? {}
  return { limit, windowMs, algorithm }
}

/** What a route shows of an option: as it is around it, and as it is overridden. Every option that a route inherits has a line. */
const options: Record<string, [around: object, own: object, seen: Seen]> = {
  key: [{ key }, { key: () => 'bob' }, (o, r) => last(o, r).decision?.key],
  cost: [{ cost: 2 }, { cost: 3 }, (o, r) => last(o, r).decision?.outcomes[0]?.remaining],
  onMissingKey: [
    { key: () => '', onMissingKey: 'deny' },
    { onMissingKey: 'skip' },
    (o, r) => last(o, r).status,
  ],
  skip: [{ skip: () => true }, { skip: () => false }, allowed],
  headers: [{ headers: [] }, { headers: ['legacy'] }, (o, r) => last(o, r).fields.size],
  exposeHeaders: [
    { exposeHeaders: true },
    { exposeHeaders: false },
    (o, r) => last(o, r).fields.has('Access-Control-Expose-Headers'),
  ],
  statusCode: [{ ...zero, statusCode: 400 }, { statusCode: 599 }, (o, r) => last(o, r).status],
  message: [{ ...zero, message: 'a' }, { message: 'b' }, answered],
  handler: [{ ...zero, handler: ours }, { handler: theirs }, answered],
  'message over a handler': [{ ...zero, handler: ours }, { message: 'b' }, answered],
  'handler over a message': [{ ...zero, message: 'a' }, { handler: theirs }, answered],
  chargeWhen: [{ chargeWhen: () => true }, { chargeWhen: () => false }, settled],
  'refundWhen over chargeWhen': [{ chargeWhen: () => true }, { refundWhen: () => true }, settled],
  idempotencyKey: [{ key, idempotencyKey: () => 'k' }, { idempotencyKey: false }, left],
  allow: [{ allow: { ips: ['203.0.113.9'] } }, { allow: { ips: ['10.0.0.1'] } }, allowed],
  block: [{ block: { ips: ['203.0.113.9'] } }, { block: { ips: ['10.0.0.1'] } }, allowed],
  penalty: [
    { ...zero, key, penalty: { after: 1, within: '1m', for: '1h' } },
    { penalty: false },
    (o, r) => last(o, r).decision?.outcomes.length,
  ],
  limit: [{ key }, { limit: 2 }, policy],
  window: [{ key }, { window: '1h' }, policy],
  algorithm: [{ key }, { algorithm: 'fixed-window' }, policy],
  hidden: [{ hidden: true }, { hidden: false }, (o, r) => last(o, r).fields.size > 0],
  mode: [{ mode: 'shadow' }, { mode: 'enforce' }, (o, r) => last(o, r).decision?.outcomes.length],
}

/** The units that are left when a response is over. */
function settled(around: Options, route: Override): number | undefined {
  const named = { ...around, name: 'n', store: memoryStore() } as Options
  const [first] = asked(named, { ...route, name: 'n' } as Override)
  first?.hold?.finish(200)
  const { decision } = last(named, { ...route, name: 'n', cost: 0 } as Override)
  return decision?.outcomes[0]?.remaining
}

it.each(Object.entries(options))(
  'a route inherits omitted options: %s',
  (_, [around, own, seen]) => {
    const outer: Options = { ...base, ...around }
    const fields = Object.keys(own).filter((field) => field in outer)
    const left = Object.fromEntries(fields.map((field) => [field, undefined]))
    const inherited = seen(outer, {})

    // Left out, or `undefined`, is the same.
    expect(seen(outer, left)).toEqual(inherited)
    expect(seen(outer, own)).not.toEqual(inherited)
    expect(seen(outer, own)).toEqual(seen({ ...outer, ...without(own) }, own))
  },
)

function without(own: object): object {
  const replaced = { ...own }
  if ('message' in own) return { ...replaced, handler: undefined } as object
  if ('handler' in own) return { ...replaced, message: undefined } as object
  if ('refundWhen' in own) return { chargeWhen: undefined } as object
  return replaced
}

describe('a policy of a route that is not whole', () => {
  const bucket = { ...base, algorithm: 'token-bucket', burst: 9 }
  const fixed = { algorithm: 'fixed-window' } as const
  const found = { window: '1m', limit: () => 7, defaultLimit: 7 }
  it.each<[string, object, Override, object]>([
    ['a limit', base, { limit: 2 }, { limit: 2, windowMs: 60_000, algorithm: 'sliding-log' }],
    ['a window', base, { window: '1h' }, { limit: 5, windowMs: 3_600_000 }],
    ['a limit, of a bucket', bucket, { limit: 2 }, { limit: 2, burst: 9 }],
    ['another algorithm', bucket, fixed, { limit: 5, windowMs: 60_000, ...fixed }],
    ['leases', base, { algorithm: 'concurrency' }, { limit: 5, windowMs: 30_000 }],
    ['a limit, of one in a list', { policies: [base] }, { limit: 2 }, { windowMs: 60_000 }],
    ['a limit, of a limit function', found, { limit: 2 }, { limit: 2 }],
    ['a name', base, { name: 'mine' }, { limit: 5, name: 'mine' }],
  ])('inherits the rest: %s', (_, around, route, policy) => {
    const { decision } = last(around as Options, route)
    expect(decision?.policy).toMatchObject(policy)
  })

  it('is private, even if the enclosing one has a name', () => {
    const around = { ...base, name: 'api', key }
    const found = last(around, { limit: 2 }).decision?.policy
    expect([found?.named, found?.limit]).toEqual([false, 2])
  })

  it('is added with the enclosing window', () => {
    const { decision } = last({ ...base, key }, { limit: 2, combine: 'add' })
    const policies = decision?.outcomes.map(({ policy }) => [policy.limit, policy.windowMs])
    expect(policies).toEqual([5, 2].map((limit) => [limit, 60_000]))
  })

  it('is rejected with the reason if there are several', () => {
    const around: Options = { policies: [base, { limit: 50, window: '1h' }] }
    expect(() => guarded(around, { limit: 2 })).toThrow(
      "routes['/r']: window is missing, and cannot be inherited, because there are 2 surrounding policies; set limit and window",
    )
  })

  it('names its place once', () => {
    expect(() => guarded(base, { limits: 2 } as Override)).toThrow(/^routes\['\/r'\]: there is no/)
  })
})

describe('chargeWhen of a route', () => {
  it('refunds nothing of the policies that the route is added to', () => {
    const store = memoryStore()
    const around = { name: 'global', ...base, store, key }
    const chargeWhen = () => false
    const route: Override = { name: 'own', limit: 3, window: '1m', combine: 'add', chargeWhen }
    const [first] = asked(around, route)
    first?.hold?.finish(200)

    // The cost of the route is its own too: the global policy is charged again.
    const { decision } = last(around, { ...route, cost: 0 })
    expect(decision?.outcomes.map(({ remaining }) => remaining)).toEqual([3, 3])
  })

  const own = { name: 'own', limit: 3, window: '1m' } as const

  it('is refused for a shared policy that the route inherits', () => {
    expect(() => guarded({ name: 'global', ...base, key }, { chargeWhen: () => false })).toThrow(
      /^routes\['\/r'\]: chargeWhen applies only to the route's own policies, .* shared: global;/,
    )
  })

  it.each([
    ['nothing back', { chargeWhen: () => false }, {}, [4, 3]],
    ['back by the rule around it', { chargeWhen: () => true }, { refundWhen: () => true }, [5, 2]],
  ])('gives %s of a shared policy that the route names', (_, settles, around, left) => {
    const profiles = { global: base }
    const options = { ...base, key, profiles, ...around, store: memoryStore() }
    const route: Override = { policies: ['global', own], ...settles }
    const [first] = asked(options, route)
    first?.hold?.finish(200)

    const { decision } = last(options, { ...route, cost: 0 })
    expect(decision?.outcomes.map(({ remaining }) => remaining)).toEqual(left)
  })

  it('applies to inherited private policies, which count for the route alone', () => {
    const store = memoryStore()
    const [first] = asked({ ...base, store, key }, { chargeWhen: () => false })
    expect(first?.hold).toBeDefined()
  })
})
