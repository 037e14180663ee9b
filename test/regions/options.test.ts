import {
  createLimiter,
  memoryStore,
  type PolicyOptions,
  type RegionalStore,
  type RegionalStoreOptions,
  regionalStore,
} from '@sluice/core'
import { ip } from '@sluice/http'
import { createOutbound } from '@sluice/outbound'
import { createQueue, createWorker, memoryBroker, statusMonitor } from '@sluice/queue'
import { rabbitmqBroker } from '@sluice/queue/rabbitmq'
import { describe, expect, it } from 'vitest'

const shares = { eu: 0.4, us: 0.4 }

function open(options: Partial<RegionalStoreOptions> = {}) {
  const [local, global] = [memoryStore(), memoryStore()]
  return regionalStore({ region: 'eu', local, global, shares, ...options })
}

function withPolicy(policy: PolicyOptions, deadlineMs?: number) {
  return createLimiter({
    policies: [{ name: 'api', ...policy }],
    store: open(),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  })
}

describe('regionalStore refuses', () => {
  const cases: readonly (readonly [what: string, make: () => unknown, message: RegExp])[] = [
    [
      'shares that add up to more than 1',
      () => open({ shares: { eu: 0.6, us: 0.5 } }),
      /the sum of shares must be at most 1.*but is 1\.1/,
    ],
    [
      'shares that do not name the region',
      () => open({ region: 'asia' }),
      /region must be one of the regions that shares names \('eu', 'us'\), but is 'asia'/,
    ],
    ['no shares', () => open({ shares: {} }), /region must be one of .*\(none\)/],
    ['a share of nothing', () => open({ shares: { eu: 0 } }), /shares\.eu must be .*but is 0/],
    ['a share that is no number', () => open({ shares: { eu: Number.NaN } }), /shares\.eu must be/],
    ['a malformed region', () => open({ region: 'eu west' }), /region must be 1 to 32 characters/],
    [
      'a malformed region among the shares',
      () => open({ shares: { ...shares, '': 0.1 } }),
      /a region of shares must be 1 to 32 characters/,
    ],
    [
      'an option that does not exist',
      () => open(Object({ share: 1 })),
      /there is no option 'share'/,
    ],
    ['a local store that is none', () => open(Object({ local: {} })), /local must be a store/],
    [
      'a global store that grants no units',
      () => open({ global: { apply: () => [], change: () => [] } }),
      /global must be a store that grants units, such as redisStore\(client\) with the encoding 'packed'/,
    ],
    [
      'a deadline out of range',
      () => open({ globalDeadlineMs: 0 }),
      /globalDeadlineMs must be a whole number from 1 to 60000/,
    ],
    [
      'an algorithm whose limit cannot be divided',
      () => withPolicy({ limit: 5, window: '1m', algorithm: 'token-bucket' }),
      /policy 'api' cannot be used .*'token-bucket' cannot be divided among regions, only that of 'sliding-log'; add reach: 'global'/,
    ],
    [
      'a window that is too short to borrow in',
      () => withPolicy({ limit: 5, window: '50ms' }),
      /a window of 50 ms is too short to borrow in/,
    ],
    [
      'concurrency that reaches all regions',
      () => withPolicy({ limit: 5, algorithm: 'concurrency', reach: 'global' }),
      /'concurrency' is counted in each region; leave reach out/,
    ],
    [
      'a policy that counts denials',
      () => withPolicy({ limit: 5, window: '1m', countDenied: true }),
      /countDenied .*use the option penalty/,
    ],
    [
      'decisions before the count, which charge one store',
      () => withPolicy({ limit: 5, window: '1m', async: { maxUncounted: 2 } }),
      /policy 'api' cannot be used .*async charges one store.*add reach: 'global', or leave async out/,
    ],
    [
      'an unknown reach',
      () => withPolicy(Object({ limit: 5, window: '1m', reach: 'planet' })),
      /policies\[0\]\.reach must be one of 'region', 'global', but is 'planet'/,
    ],
    [
      'a limiter that gives up before the global store may',
      () => withPolicy({ limit: 5, window: '1m' }, 50),
      /deadlineMs \(50\) must be more than the globalDeadlineMs of regionalStore \(50\)/,
    ],
  ]

  it.each(cases)('%s', (_what, make, message) => {
    expect(make).toThrow(message)
  })

  it('one store for local and global', () => {
    const store = memoryStore()
    expect(() => open({ local: store, global: store })).toThrow('local and global are one store')
  })

  it('a store that is that of another region, and a region with two stores', async () => {
    const [local, global] = [memoryStore(), memoryStore()]
    const first = open({ local, global })
    expect(() => open({ local, global, region: 'us' })).toThrow(
      "local is the store of region 'eu' already; give region 'us' one of its own",
    )
    expect(() => open({ global })).toThrow("region 'eu' has another local store already")
    expect(() => open({ local, global, shares: { eu: 0.5 } })).toThrow('with other shares')
    const second = open({ local, global })
    expect(second.space).toBe(first.space)
    await first.close()
    await second.close()
    // A region may be renamed once nothing uses it.
    await open({ local, global, region: 'us' }).close()
  })

  it('one name with two reaches', () => {
    const store = open()
    createLimiter({ policies: [{ name: 'api', limit: 5, window: '1m' }], store })
    expect(() =>
      createLimiter({
        policies: [{ name: 'api', limit: 5, window: '1m', reach: 'global' }],
        store,
      }),
    ).toThrow(/the name 'api' is one quota on this store.*with reach 'global'/)
  })
})

describe('what needs its counts in one place refuses a regionalStore', () => {
  const broker = memoryBroker({ name: 'regions' })
  const refused = (make: (store: RegionalStore) => unknown) => () => make(open())
  const handler = async () => undefined

  it.each([
    [
      'createOutbound',
      refused((store) =>
        createOutbound({ name: 'crm', limits: [{ limit: 5, window: '1s' }], store }),
      ),
    ],
    [
      'createWorker',
      refused((store) => createWorker({ broker, limit: 5, window: '1s', store, handler })),
    ],
    [
      'statusMonitor',
      refused((store) => statusMonitor({ queue: createQueue({ broker, identity: ip() }), store })),
    ],
    [
      'rabbitmqBroker',
      refused((store) => rabbitmqBroker({ name: 'jobs', connection: 'amqp://127.0.0.1', store })),
    ],
  ])('%s', (_what, make) => {
    expect(make).toThrow(
      "store must be a store that counts in one place, such as the global store of the regionalStore, but is 'regional'",
    )
  })
})

describe('reach', () => {
  it('changes nothing on a store of one place', async () => {
    const limiter = createLimiter({ limit: 1, window: '1m', reach: 'global' })
    expect((await limiter.consume('user')).allowed).toBe(true)
    expect((await limiter.consume('user')).allowed).toBe(false)
  })
})

describe('shares', () => {
  it('add up exactly, where floating-point numbers do not', async () => {
    const limiter = createLimiter({
      policies: [{ name: 'api', limit: 100, window: '1m' }],
      store: open({ shares: { eu: 0.29, us: 0.1, asia: 0.2, africa: 0.41 } }),
    })
    let passed = 0
    while ((await limiter.consume('user')).allowed) passed += 1
    expect(passed).toBe(29)
  })
})
