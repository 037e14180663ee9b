import { policyFields } from '@sluice/core'
import { apiKey, type GuardFields, ip } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from './exchange.ts'
import { errorOf, type Wrong } from './wrong-options.ts'

const good = { limit: 5, window: '1m' } as const

const optionNames = [
  ...['name', 'limit', 'window', 'algorithm', 'resolution', 'countDenied', 'hidden'],
  ...['unit', 'key', 'cost', 'onMissingKey', 'skip', 'headers', 'exposeHeaders'],
  ...['hideOnRedirect', 'retryJitter', 'maxWaiting', 'statusCode'],
  ...['message', 'handler', 'store', 'failureMode', 'deadlineMs', 'instances'],
  ...['fallback', 'observers'],
]

const making = (options: object) => () => guardOf(options as GuardFields<object>)

const unknown = 'SLUICE_OPTION_UNKNOWN'
const proxies =
  /; configure proxies in the framework, not in the limiter: app\.set\('trust proxy', 1\) in Express/

it.each<Wrong>([
  // Options in a place where they mean nothing.
  [{ ...good, combine: 'add' }, /^rateLimit: there is no option 'combine'/, unknown],
  [{ routes: { '/r': { ...good, routes: {} } } }, /'\/r'.*there is no option 'routes'/, unknown],
  [{ routes: { '/r': { ...good, profiles: {} } } }, /'\/r'.*no option 'profiles'/, unknown],
  [{ policies: [{ ...good, skip: () => 1 }] }, /policies\[0\]: there is no .*'skip'/, unknown],
  [{ ...good, profiles: { a: { ...good, message: '' } } }, /a: .*no option 'message'/, unknown],
  [{ ...good, profiles: { a: { ...good, deadlineMs: 1 } } }, /no option 'deadlineMs'/, unknown],
  // Options that there are not.
  [{ ...good, wndow: 1 }, /rateLimit: there is no option 'wndow'/, unknown],
  [
    { ...good, statusMessage: 'slow down' },
    /^rateLimit: there is no option 'statusMessage'; the closest are 'message', 'statusCode'; all options are listed in https:\/\/sluice-js\.github\.io\/sluice\/options\.html$/,
    unknown,
  ],
  [{ ...good, skipOnError: true }, /\(did you mean 'failureMode'\?\)$/, unknown],
  [{ ...good, onDecision: () => 1 }, /\(did you mean 'observers'\?\)$/, unknown],
  [{ ...good, zebra: 1 }, /^rateLimit: .*no option 'zebra'; all options are listed/, unknown],
  [{ ...good, trustProxy: 1 }, proxies, unknown],
  [{ ...good, 'trust proxy': 1 }, proxies, unknown],
  [{ ...good, trust_proxies: 1 }, proxies, unknown],
  [{ ...good, TrustedProxies: 1 }, proxies, unknown],
  // Options that do not fit together.
  [
    { ...good, reserve: () => 5, idempotencyKey: true },
    /^idempotencyKey and reserve cannot be combined in rateLimit, since a retry repeats/,
  ],
  [
    { ...good, reserve: true, admission: { take: () => undefined } },
    /^admission and reserve cannot be combined/,
  ],
  [{ ...good, message: 'no', handler: 'throw' }, /^message and handler cannot be combined/],
  [
    { ...good, routes: { '/a': { message: 'no', handler: () => undefined } } },
    /^routes\['\/a'\]: message and handler cannot be combined/,
  ],
  [{ ...good, defaultLimit: 5 }, /^defaultLimit must be left out/],
  [{ ...good, policies: [good] }, /limit is shorthand for a single policy/],
  [
    { policies: [1, 2].map((limit) => ({ ...good, limit, name: 'a' })) },
    /have the name 'a'/,
    'SLUICE_POLICY_DUPLICATE',
  ],
  // Values of policies: core tries the others.
  [{}, /no policy: give limit and window/],
  [{ ...good, limit: () => 5 }, /^defaultLimit must be a whole/, 'SLUICE_LIMIT_INVALID'],
  [{ ...good, limit: () => 5, defaultLimit: -1 }, /^defaultLimit/, 'SLUICE_LIMIT_INVALID'],
  [{ ...good, name: 'naïve' }, /^name must be/, 'SLUICE_POLICY_NAME'],
  [{ policies: [] }, /^policies must be an array of/],
  [{ policies: [null] }, /policies\[0\] must be a plain object/],
  [{ policies: [good, { ...good, limit: -1 }] }, /^policies\[1\].limit/, 'SLUICE_LIMIT_INVALID'],
  [{ policies: [{ ...good, cost: -1 }] }, /^policies\[0\].cost/, 'SLUICE_COST_INVALID'],
  [{ policies: [{ ...good, key: 1 }] }, /^policies\[0\].key/],
  // Values of the guard.
  [{ ...good, reserve: 5 }, /^reserve must be true, or a function that returns the units/],
  [{ ...good, key: 'ip' }, /^key must be a resolver/],
  [{ ...good, key: ip }, /^key must be called, as in key: ip\(…\)/],
  [{ ...good, key: apiKey }, /^key must be called, as in key: apiKey/],
  [{ ...good, skip: true }, /^skip must be a function/],
  [{ ...good, handler: {} }, /^handler must be a function/],
  [{ ...good, message: 5 }, /^message must be a string, an object/],
  [{ ...good, preflights: 'skip' }, /^preflights must be one of 'pass', 'count'/],
  [{ ...good, statusCode: 200 }, /^statusCode .* from 400 to 599/],
  [{ ...good, statusCode: 600 }, /^statusCode/],
  [{ ...good, onMissingKey: 'pass' }, /one of 'ip', 'deny', 'skip'/],
  [{ ...good, exposeHeaders: 1 }, /^exposeHeaders must be true or/],
  [{ ...good, hideOnRedirect: 1 }, /^hideOnRedirect/],
  [{ ...good, retryJitter: 1.5 }, /^retryJitter .* from 0 to 1/],
  [{ ...good, retryJitter: Number.NaN }, /^retryJitter/],
  [{ ...good, maxWaiting: -1 }, /^maxWaiting must be a whole number/],
  [{ ...good, maxWaiting: 0.5 }, /^maxWaiting .* but is 0.5/],
  [{ ...good, maxWaiting: Number.POSITIVE_INFINITY }, /^maxWaiting/],
  [{ ...good, headers: 'draft-11' }, /^headers must be an array/],
  [{ ...good, headers: ['draft-6', 'draft-11'] }, /keep either/],
  [{ ...good, store: {} }, /^store must be a store/],
  [{ ...good, shed: true }, /^shed must be a plain object/],
])('rejects %o', (options, message, code) => {
  expect(making(options)).toThrow(errorOf(message, code))
})

const queue = { ...good, algorithm: 'leaky-bucket' }
const leases = { limit: 5, algorithm: 'concurrency' }

it.each<[string, object]>([
  ...optionNames.map((field): [string, object] => [field, good]),
  ['preflights', good],
  ['shed', good],
  ['burst', { ...good, algorithm: 'token-bucket' }],
  ['queue', queue],
  ['maxDelay', queue],
  ['lease', leases],
  ['retryAfter', leases],
  ['align', { ...good, algorithm: 'fixed-window' }],
])('null as %s is rejected, since it may be an unreadable setting', (field, options) => {
  const message = new RegExp(`^${field}\\b.* but is null`)
  expect(making({ ...options, [field]: null })).toThrow(message)
})

describe('options that a guard is made of', () => {
  const left = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, undefined]))
  const more = ['policies', 'penalty', 'routes', 'profiles', 'allow', 'shed']
  const none = left([...optionNames, ...more])
  const noPolicy = left(policyFields)
  const noPenalty = { factor: undefined, max: undefined, name: undefined, hidden: undefined }

  it.each<[object, limits: number]>([
    [{ ...none, ...good }, 1],
    [{ ...none, policies: [{ ...noPolicy, key: undefined, cost: undefined, ...good }] }, 1],
    [{ ...none, ...good, routes: { '/x': { ...none, combine: undefined, limit: 2 } } }, 1],
    [{ ...none, routes: { '/x': { ...none, ...good } } }, 0],
    [{ ...none, ...good, profiles: { dear: { ...noPolicy, ...good } } }, 1],
    [{ ...none, penalty: { after: 1, within: '1m', for: '1m', ...noPenalty } }, 0],
    [{ ...none, penalty: { after: 'never', within: undefined, ...noPenalty } }, 0],
  ])('undefined is the same as omitting the option: %#', async (options, limits) => {
    const guard = guardOf(options as GuardFields<object>)
    const { verdict } = await guard.check(exchange())
    expect(guard.limiter.policies[0]?.name).toBe('default')
    expect(verdict.fields.length > 0 ? 1 : 0).toBe(limits)
  })

  it('a name that is legal but unusual gives one warning', () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    guardOf({ ...good, name: 'per user' })
    guardOf({ ...good, name: 'per user' })
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining(`'per user' may not`))
    warn.mockRestore()
  })
})
