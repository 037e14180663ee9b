import { memoryStore, policyFields, SluiceError } from '@sluice/core'
import { apiKey, type GuardOptions, ip } from '@sluice/http'
import { createGuard } from '@sluice/http/adapter'
import { describe, expect, it, vi } from 'vitest'
import { exactRouting, exchange } from './exchange.ts'

type Options = GuardOptions<object, () => void>

const good = { limit: 5, window: '1m' } as const

const optionNames = [
  ...['name', 'limit', 'window', 'algorithm', 'resolution', 'countDenied', 'hidden'],
  ...['unit', 'key', 'cost', 'onMissingKey', 'skip', 'headers', 'exposeHeaders'],
  ...['hideOnRedirect', 'retryJitter', 'maxWaiting', 'statusCode'],
  ...['message', 'handler', 'store', 'failureMode', 'deadlineMs', 'instances'],
  ...['fallback', 'observers'],
]

function create(options: Options) {
  return createGuard<object, () => void>(options, { where: 'rateLimit', routing: exactRouting })
}

function failure(options: object): SluiceError {
  try {
    create(options as Options)
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('options in a place where they mean nothing', () => {
  const names: readonly (readonly [object, RegExp])[] = [
    [{ ...good, combine: 'add' }, /^rateLimit: there is no option 'combine'/],
    [{ routes: { '/r': { ...good, routes: {} } } }, /'\/r'.*there is no option 'routes'/],
    [{ routes: { '/r': { ...good, profiles: {} } } }, /'\/r'.*there is no option 'profiles'/],
    [{ policies: [{ ...good, skip: () => true }] }, /policies\[0\]: there is no option 'skip'/],
    [{ ...good, profiles: { a: { ...good, message: '' } } }, /a: there is no option 'message'/],
    [
      { ...good, profiles: { a: { ...good, deadlineMs: 1 } } },
      /a: there is no option 'deadlineMs'/,
    ],
  ]

  it.each(names)('%j', (options, message) => {
    expect(failure(options)).toMatchObject({ code: 'SLUICE_OPTION_UNKNOWN' })
    expect(failure(options).message).toMatch(message)
  })
})

describe('options that no guard is made of', () => {
  it.each<[object, string, RegExp]>([
    [{ ...good, wndow: 1 }, 'SLUICE_OPTION_UNKNOWN', /rateLimit: there is no option 'wndow'/],
    [
      { ...good, statusMessage: 'slow down' },
      'SLUICE_OPTION_UNKNOWN',
      /^rateLimit: there is no option 'statusMessage'; the closest are 'message', 'statusCode'; all options are listed in https:\/\/sluice-js\.github\.io\/sluice\/options\.html$/,
    ],
    [
      { ...good, reserve: 5 },
      'SLUICE_OPTION_INVALID',
      /^reserve must be true, or a function that finds the units, but is 5/,
    ],
    [
      { ...good, reserve: () => 5, idempotencyKey: true },
      'SLUICE_OPTION_INVALID',
      /^idempotencyKey and reserve cannot stand together in rateLimit, since a retry runs/,
    ],
    [
      { ...good, reserve: true, admission: { take: () => undefined } },
      'SLUICE_OPTION_INVALID',
      /^admission and reserve cannot stand together/,
    ],
    [{ ...good, imit: 1 }, 'SLUICE_OPTION_UNKNOWN', /\(did you mean 'limit'\?\)$/],
    [{ ...good, onDecision: () => 1 }, 'SLUICE_OPTION_UNKNOWN', /\(did you mean 'observers'\?\)$/],
    [
      { ...good, zebra: 1 },
      'SLUICE_OPTION_UNKNOWN',
      /^rateLimit: there is no option 'zebra'; all options are listed in \S+$/,
    ],
    ...['trustProxy', 'trust proxy', 'trust_proxies', 'TrustedProxies'].map(
      (spelling): [object, string, RegExp] => [
        { ...good, [spelling]: 1 },
        'SLUICE_OPTION_UNKNOWN',
        /; configure proxies in the framework, not in the limiter: app\.set\('trust proxy', 1\) in Express/,
      ],
    ),
    [{}, 'SLUICE_OPTION_INVALID', /no policy: give limit and window/],
    [{ limit: 5 }, 'SLUICE_OPTION_INVALID', /^window must be whole milliseconds/],
    [{ ...good, window: '5' }, 'SLUICE_OPTION_INVALID', /^window must be/],
    [{ ...good, limit: -1 }, 'SLUICE_LIMIT_INVALID', /^limit must be a whole number/],
    [{ ...good, limit: Number.NaN }, 'SLUICE_LIMIT_INVALID', /^limit .* but is NaN/],
    [{ ...good, limit: 0.5 }, 'SLUICE_LIMIT_INVALID', /^limit .* but is 0.5/],
    [
      { ...good, limit: '5' },
      'SLUICE_LIMIT_INVALID',
      /^limit .* from 0 to 140737488355327, but is '5'/,
    ],
    [{ ...good, limit: 2 ** 53 }, 'SLUICE_LIMIT_INVALID', /^limit .* but is 9007199254740992/],
    [{ ...good, limit: 2 ** 50 }, 'SLUICE_POLICY_RANGE', /it can be 150119987579 at most/],
    [{ ...good, cost: Number.NaN }, 'SLUICE_COST_INVALID', /^cost must be a whole number/],
    [{ ...good, cost: -1 }, 'SLUICE_COST_INVALID', /^cost .* but is -1/],
    [{ ...good, cost: 0.5 }, 'SLUICE_COST_INVALID', /^cost .* but is 0.5/],
    [{ ...good, cost: '1' }, 'SLUICE_COST_INVALID', /^cost .* but is '1'/],
    [{ ...good, limit: () => 5 }, 'SLUICE_LIMIT_INVALID', /^defaultLimit must be a whole number/],
    [{ ...good, limit: () => 5, defaultLimit: -1 }, 'SLUICE_LIMIT_INVALID', /^defaultLimit/],
    [{ ...good, defaultLimit: 5 }, 'SLUICE_OPTION_INVALID', /^defaultLimit must be left out/],
    [{ ...good, key: 'ip' }, 'SLUICE_OPTION_INVALID', /^key must be a resolver/],
    [{ ...good, key: ip }, 'SLUICE_OPTION_INVALID', /^key must be called, as in key: ip\(…\)/],
    [{ ...good, key: apiKey }, 'SLUICE_OPTION_INVALID', /^key must be called, as in key: apiKey/],
    [{ ...good, skip: true }, 'SLUICE_OPTION_INVALID', /^skip must be a function/],
    [{ ...good, handler: {} }, 'SLUICE_OPTION_INVALID', /^handler must be a function/],
    [{ ...good, message: 5 }, 'SLUICE_OPTION_INVALID', /^message must be a text, an object/],
    [{ ...good, message: null }, 'SLUICE_OPTION_INVALID', /^message .* but is null/],
    [
      { ...good, message: 'no', handler: 'throw' },
      'SLUICE_OPTION_INVALID',
      /^message and handler cannot stand together/,
    ],
    [
      { ...good, routes: { '/a': { message: 'no', handler: () => undefined } } },
      'SLUICE_OPTION_INVALID',
      /^routes\['\/a'\]: message and handler cannot stand together/,
    ],
    ...['skip', true, null].map((preflights): [object, string, RegExp] => [
      { ...good, preflights },
      'SLUICE_OPTION_INVALID',
      /^preflights must be one of 'pass', 'count'/,
    ]),
    [{ ...good, statusCode: 200 }, 'SLUICE_OPTION_INVALID', /^statusCode .* from 400 to 599/],
    [{ ...good, statusCode: 600 }, 'SLUICE_OPTION_INVALID', /^statusCode/],
    [{ ...good, onMissingKey: 'pass' }, 'SLUICE_OPTION_INVALID', /one of 'ip', 'deny', 'skip'/],
    [{ ...good, exposeHeaders: 1 }, 'SLUICE_OPTION_INVALID', /^exposeHeaders must be true or/],
    [{ ...good, hideOnRedirect: 1 }, 'SLUICE_OPTION_INVALID', /^hideOnRedirect/],
    [{ ...good, retryJitter: 1.5 }, 'SLUICE_OPTION_INVALID', /^retryJitter .* from 0 to 1/],
    [{ ...good, retryJitter: Number.NaN }, 'SLUICE_OPTION_INVALID', /^retryJitter/],
    [{ ...good, maxWaiting: -1 }, 'SLUICE_OPTION_INVALID', /^maxWaiting must be a whole number/],
    [{ ...good, maxWaiting: 0.5 }, 'SLUICE_OPTION_INVALID', /^maxWaiting .* but is 0.5/],
    [{ ...good, maxWaiting: Number.POSITIVE_INFINITY }, 'SLUICE_OPTION_INVALID', /^maxWaiting/],
    [{ ...good, headers: 'draft-11' }, 'SLUICE_OPTION_INVALID', /^headers must be an array/],
    [{ ...good, headers: ['draft-12'] }, 'SLUICE_OPTION_INVALID', /'draft-12'/],
    [{ ...good, headers: ['draft-6', 'draft-11'] }, 'SLUICE_OPTION_INVALID', /keep either/],
    [{ ...good, name: 'naïve' }, 'SLUICE_POLICY_NAME', /^name must be/],
    [{ ...good, store: {} }, 'SLUICE_OPTION_INVALID', /^store must be a store/],
    [{ ...good, policies: [good] }, 'SLUICE_OPTION_INVALID', /limit stands beside policies/],
    [{ policies: [] }, 'SLUICE_OPTION_INVALID', /^policies must be an array of/],
    [{ policies: [null] }, 'SLUICE_OPTION_INVALID', /policies\[0\] must be a plain object/],
    [{ policies: [good, { ...good, limit: -1 }] }, 'SLUICE_LIMIT_INVALID', /^policies\[1\].limit/],
    [{ policies: [{ ...good, cost: -1 }] }, 'SLUICE_COST_INVALID', /^policies\[0\].cost/],
    [{ policies: [{ ...good, key: 1 }] }, 'SLUICE_OPTION_INVALID', /^policies\[0\].key/],
    [{ policies: [{ ...good, skip: 1 }] }, 'SLUICE_OPTION_UNKNOWN', /policies\[0\]: there is no/],
    [
      {
        policies: [
          { ...good, name: 'a' },
          { ...good, name: 'a' },
        ],
      },
      'SLUICE_POLICY_DUPLICATE',
      /'a' stands twice/,
    ],
  ])('%o', (options, code, message) => {
    const error = failure(options)

    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
  })
})

describe('null', () => {
  const [bucket, queue, leases, window] = [
    { ...good, algorithm: 'token-bucket' },
    { ...good, algorithm: 'leaky-bucket' },
    { limit: 5, algorithm: 'concurrency' },
    { ...good, algorithm: 'fixed-window' },
  ]

  it.each<[string, object]>([
    ...optionNames.map((field): [string, object] => [field, good]),
    ['burst', bucket],
    ['queue', queue],
    ['maxDelay', queue],
    ['lease', leases],
    ['retryAfter', leases],
    ['align', window],
  ])('as %s is refused, since it may be a setting that could not be read', (field, options) => {
    expect(failure({ ...options, [field]: null }).message).toMatch(
      new RegExp(`^${field}\\b.* but is null`),
    )
  })
})

describe('options that a guard is made of', () => {
  it.each<[Options]>([
    [{ ...good, limit: 0 }],
    [{ ...good, algorithm: 'leaky-bucket', maxWaiting: 0 }],
    [{ ...good, limit: () => 5, defaultLimit: 0 }],
    [{ ...good, cost: 0, message: {}, headers: [], retryJitter: 1, statusCode: 599 }],
    [{ policies: [{ ...good, key: () => 'a', cost: async () => 1 }], store: memoryStore() }],
  ])('%o', (options) => {
    expect(create(options).limiter.policies).toHaveLength(1)
  })

  const none = Object.fromEntries(
    [...optionNames, 'policies', 'penalty', 'routes', 'profiles', 'allow', 'shed'].map((name) => [
      name,
      undefined,
    ]),
  )
  const noPolicy = Object.fromEntries(policyFields.map((name) => [name, undefined]))
  const noPenalty = { factor: undefined, max: undefined, name: undefined, hidden: undefined }

  it.each<[object, limits: number]>([
    [{ ...none, ...good }, 1],
    [{ ...none, policies: [{ ...noPolicy, key: undefined, cost: undefined, ...good }] }, 1],
    [{ ...none, ...good, routes: { '/x': { ...none, combine: undefined, limit: 2 } } }, 1],
    [{ ...none, routes: { '/x': { ...none, ...good } } }, 0],
    [{ ...none, ...good, profiles: { dear: { ...noPolicy, ...good } } }, 1],
    [{ ...none, penalty: { after: 1, within: '1m', for: '1m', ...noPenalty } }, 0],
    [{ ...none, penalty: { after: 'never', within: undefined, ...noPenalty } }, 0],
  ])('undefined is as if the option were not there: %#', async (options, limits) => {
    const guard = create(options as Options)
    const { verdict } = await guard.check(exchange())

    expect(guard.limiter.policies[0]?.name).toBe('default')
    expect(verdict.fields.length > 0 ? 1 : 0).toBe(limits)
  })

  it('a name that is legal but unusual gives one warning', () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    create({ ...good, name: 'per user' })
    create({ ...good, name: 'per user' })

    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining(`'per user' is legal`))
    warn.mockRestore()
  })
})
