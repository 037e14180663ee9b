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
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { storeThrough } from '../support/store-through.ts'

const shares = { eu: 0.4, us: 0.4 }

function open(options: Partial<RegionalStoreOptions> = {}) {
  const [local, global] = [memoryStore(), memoryStore()]
  return regionalStore({ region: 'eu', local, global, shares, ...options })
}

describe('regionalStore refuses', () => {
  it.each<[options: Partial<RegionalStoreOptions>, message: RegExp]>([
    [{ shares: { eu: 0.6, us: 0.5 } }, /the sum of shares must be at most 1.*but is 1\.1/],
    [{ region: 'asia' }, /one of the regions in shares \('eu', 'us'\), but is 'asia'/],
    [{ shares: {} }, /region must be one of .*\(none\)/],
    [{ shares: { eu: 0 } }, /shares\.eu must be .*but is 0/],
    [{ shares: { eu: Number.NaN } }, /shares\.eu must be/],
    [{ region: 'eu west' }, /region must be one of the regions.*but is 'eu west'/],
    [{ shares: { ...shares, '': 0.1 } }, /a region of shares must be 1 to 32 characters/],
    [Object({ share: 1 }), /there is no option 'share'/],
    [Object({ local: {} }), /local must be a store/],
    [
      { global: { apply: () => [], change: () => [] } },
      /global must be a store that grants units, such as redisStore\(client\) with the encoding 'packed'/,
    ],
    [{ globalDeadlineMs: 0 }, /globalDeadlineMs must be a whole number from 1 to 60000/],
  ])('the options %o', (options, message) => {
    expect(() => open(options)).toThrow(message)
  })

  const minutely = { limit: 5, window: '1m' } as const

  it.each<[policy: PolicyOptions, message: RegExp]>([
    [
      { ...minutely, algorithm: 'token-bucket' },
      /policy 'api' cannot be used .*'token-bucket' cannot be divided among regions, only that of 'sliding-log'; add reach: 'global'/,
    ],
    [{ limit: 5, window: '50ms' }, /a window of 50 ms is too short for borrowing/],
    [
      { limit: 5, algorithm: 'concurrency', reach: 'global' },
      /'concurrency' is counted in each region; remove reach/,
    ],
    [{ ...minutely, countDenied: true }, /countDenied .*use the option penalty/],
    [
      { ...minutely, async: { maxUncounted: 2 } },
      /policy 'api' cannot be used .*async charges one store.*add reach: 'global', or remove async/,
    ],
    [
      Object({ ...minutely, reach: 'planet' }),
      /policies\[0\]\.reach must be one of 'region', 'global', but is 'planet'/,
    ],
  ])('the policy %o', (policy, message) => {
    const policies = [{ name: 'api', ...policy }]
    expect(() => createLimiter({ policies, store: open() })).toThrow(message)
  })

  it('a limiter that gives up before the global store may', () => {
    expect(() => createLimiter({ ...minutely, store: open(), deadlineMs: 50 })).toThrow(
      /deadlineMs \(50\) must be more than the globalDeadlineMs of regionalStore \(50\)/,
    )
  })

  it('one store for local and global', () => {
    const store = memoryStore()
    expect(() => open({ local: store, global: store })).toThrow('are the same store')
  })

  it('a store that is that of another region, and a region with two stores', async () => {
    const [local, global] = [memoryStore(), memoryStore()]
    const first = open({ local, global })
    expect(() => open({ local, global, region: 'us' })).toThrow(
      "local is already the store of region 'eu'; give each region its own store",
    )
    expect(() => open({ global })).toThrow("region 'eu' already has another local store")
    expect(() => open({ local, global, shares: { eu: 0.5 } })).toThrow('the same global store')
    const second = open({ local, global })
    expect(second.space).toBe(first.space)
    await first.close()
    await second.close()
    // A region may be renamed once nothing uses it.
    await open({ local, global, region: 'us' }).close()
  })

  it('one name with two reaches', () => {
    const store = open()
    const api = { name: 'api', ...minutely, store }
    createLimiter(api)
    const message = /the name 'api' is one quota on this store.*with reach 'global'/
    expect(() => createLimiter({ ...api, reach: 'global' })).toThrow(message)
  })
})

it('a region asks the global store for nobody: once it is closed, or after the deadline', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = vi.fn()
  const late = new Promise((resolve) => setTimeout(resolve, 2_000))
  const fleet = { instances: 1, shareReport: asked }
  const global = { ...storeThrough(memoryStore(), asked), fleet }
  const local = storeThrough(memoryStore(), () => late)
  const store = open({ local, global, shares: { eu: 0.1 } })
  const limiter = createLimiter({ limit: 5, window: '1m', store, failureMode: 'closed' })
  await store.close()
  const decision = limiter.consume('k')
  await vi.advanceTimersByTimeAsync(5_000)
  expect((await decision).source).toBe('closed')
  expect(asked).not.toHaveBeenCalled()
})

describe('what needs its counts in one place refuses a regionalStore', () => {
  const broker = memoryBroker({ name: 'regions' })
  const rate = { limit: 5, window: '1s' } as const
  const handler = async () => undefined

  it.each<[string, (store: RegionalStore) => unknown]>([
    ['createOutbound', (store) => createOutbound({ name: 'crm', limits: [rate], store })],
    ['createWorker', (store) => createWorker({ broker, ...rate, store, handler })],
    [
      'statusMonitor',
      (store) => statusMonitor({ queue: createQueue({ broker, identity: ip() }), store }),
    ],
    ['rabbitmqBroker', (store) => rabbitmqBroker({ name: 'a', connection: 'amqp://127.1', store })],
  ])('%s', (_what, make) => {
    expect(() => make(open())).toThrow(
      "store must be a store that counts in one place, such as the global store of the regionalStore, but is 'regional'",
    )
  })
})

it('reach changes nothing on a store of one place', async () => {
  const limiter = createLimiter({ limit: 1, window: '1m', reach: 'global' })
  expect((await limiter.consume('user')).allowed).toBe(true)
  expect((await limiter.consume('user')).allowed).toBe(false)
})

it('shares add up exactly, where floating-point numbers do not', async () => {
  const limiter = createLimiter({
    policies: [{ name: 'api', limit: 100, window: '1m' }],
    store: open({ shares: { eu: 0.29, us: 0.1, asia: 0.2, africa: 0.41 } }),
  })
  let passed = 0
  while ((await limiter.consume('user')).allowed) passed += 1
  expect(passed).toBe(29)
})
