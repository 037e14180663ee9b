import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { filesUnder } from '../support/workspace.ts'
import { contenders } from './concurrency/concurrency-contenders.ts'
import { layerOf, layers } from './concurrency/layers.ts'
import { recordCalls } from './concurrency/recorded-calls.ts'
import { SteadyLogs } from './concurrency/steady-logs.ts'
import { clientKeys } from './harness/client-keys.ts'
import { type ClientName, connectClient, disconnect } from './harness/clients.ts'
import { coresIn } from './harness/pinning.ts'
import type { Series } from './harness/rounds.ts'
import { benchOptions } from './options.ts'
import { type Bar, measureBars } from './report/bars.ts'
import { Report } from './report/report.ts'
import type { RedisSubject } from './subjects/redis-subject.ts'

const open: (() => unknown)[] = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

describe('the logs of the suite concurrency', () => {
  it('are full but for one unit, by the clock of the server', async () => {
    const { control, subject } = await opened('ioredis 5')
    const identities = clientKeys(40)
    const steady = await SteadyLogs.open(control, subject, identities)
    await steady.fill(1)
    for (const identity of identities) {
      expect(await subject.check(identity)).toBe(true)
      expect(await subject.check(identity)).toBe(false)
    }
  })

  it('let as many pass as were expected, again after each filling', async () => {
    const { control, subject } = await opened('node-redis 6')
    const identities = clientKeys(20)
    const steady = await SteadyLogs.open(control, subject, identities)
    for (let round = 0; round < 2; round += 1) {
      await steady.fill(1_000_000)
      for (let times = 0; times < 10; times += 1) {
        for (const identity of identities) expect(await subject.check(identity)).toBe(true)
      }
    }
  })
})

describe('recordCalls', () => {
  it('sends the calls of checks again, and leaves the client as it was', async () => {
    const { control, subject, client } = await opened('ioredis 6')
    const { calls, checksPerCall } = await recordCalls(client, () =>
      // Twelve of one tick are four calls.
      Promise.all(Array.from({ length: 12 }, (_, i) => subject.check(`k${i}`))),
    )
    expect(checksPerCall).toBe(3)
    expect(Object.hasOwn(client, 'call')).toBe(false)
    const before = await evalshaCalls(control)
    await calls[0]?.()
    expect(await evalshaCalls(control)).toBe(before + 1)
  })
})

describe('layerOf', () => {
  const sources = ['core', 'redis']
    .flatMap((name) => filesUnder(`packages/${name}/src`, '.ts'))
    .map((file) => file.replace('packages/', ''))
  const frameIn = (file: string) => ({ functionName: 'f', url: `file:///x/packages/${file}` })
  /** No check through Redis runs them. */
  const offTheWay = ['core/src/backend.ts', 'core/src/index.ts', 'redis/src/index.ts']

  it('finds the layer by file', () => {
    const redis = 'file:///x/packages/redis/src'
    expect(layerOf({ functionName: 'decodeReply', url: `${redis}/replies/reply.ts` })).toBe(
      'decoding',
    )
    expect(layerOf({ functionName: 'encode', url: `${redis}/calls/call.ts` })).toBe('encoding')
    const ioredis = 'file:///x/node_modules/ioredis/built/DataHandler.js'
    expect(layerOf({ functionName: 'returnReply', url: ioredis })).toBe('client')
    expect(layerOf({ functionName: '(garbage collector)', url: '' })).toBe('garbage')
  })

  it.each(layers.flatMap(({ ours = [] }) => ours))('begins a path in the tree: %s', (start) => {
    expect(sources.filter((file) => file.startsWith(start))).not.toEqual([])
  })

  it('finds a layer for each file that a check goes through', () => {
    const isNamed = (file: string): boolean => layerOf(frameIn(file)) !== file
    expect(sources.filter((file) => !isNamed(file))).toEqual(offTheWay)
  })

  it('names a file that is in no layer, and leaves out waiting', () => {
    const url = 'file:///x/packages/core/src/new-thing.ts'
    expect(layerOf({ functionName: 'f', url })).toBe('core/src/new-thing.ts')
    expect(layerOf({ functionName: '(idle)', url: '' })).toBeUndefined()
  })
})

describe('coresIn', () => {
  it('reads the list that taskset prints', () => {
    expect(coresIn("pid 12's current affinity list: 0,2-4\n")).toEqual([0, 2, 3, 4])
    expect(coresIn("pid 12's current affinity list: 1\n")).toEqual([1])
  })
})

describe('measureBars', () => {
  const bar = { suite: 's', case: 'c', subject: 'ours', text: 'x', figure: 'nodeCpuUs' }

  it('takes the ratio of the same rounds, against the best peer', () => {
    const report = reportOf({ ours: [2, 3], slow: [8, 8], best: [4, 6] })
    const [result] = measureBars(report, [{ ...bar, atMost: 0.5, wanted: 0.4 }])
    expect(result).toMatchObject({ against: 'best', value: 0.5, isMet: true, isWantedMet: false })
    expect(result?.bound).toBe('≤ 0.5 × (wanted 0.4)')
  })

  it('tells of what is wanted where there is no bar', () => {
    const report = reportOf({ ours: [2], best: [8] })
    const [result] = measureBars(report, [{ ...bar, wanted: 0.5 }])
    expect(result).toMatchObject({ isWantedMet: true, bound: '(wanted ≤ 0.5 ×)' })
    expect(result).not.toHaveProperty('isMet')
  })

  it('compares differences where the bar is one', () => {
    const report = reportOf({ ours: [3], best: [2] })
    const difference: Bar = { ...bar, atMost: 0.2, isDifference: true, unit: 'µs' }
    expect(measureBars(report, [difference])[0]).toMatchObject({ value: 1, isMet: false })
  })

  it('has no result for what was not measured', () => {
    expect(measureBars(new Report(), [{ ...bar, atMost: 1 }])).toEqual([])
  })
})

describe('the command line', () => {
  const suites = [{ name: 'checks' }, { name: 'concurrency' }, { name: 'budget', onDemand: true }]

  it('runs a suite on demand only when it is named', () => {
    expect(benchOptions([], suites).suites).toEqual(['checks', 'concurrency'])
    expect(benchOptions(['--suite', 'budget'], suites).suites).toEqual(['budget'])
  })

  it('takes --case beside suites that can be measured in part only', () => {
    expect(benchOptions(['--suite', 'concurrency', '--case', '64'], suites).case).toBe('64')
    expect(() => benchOptions(['--suite', 'checks', '--case', '64'], suites)).toThrow('--case')
  })
})

/** The log of the suite on a server of its own. */
async function opened(name: ClientName) {
  const server = await startRedis()
  open.push(() => server.stop())
  const control = new Redis(server.port)
  open.push(() => control.disconnect())
  const client = await connectClient(name, server.port)
  open.push(() => disconnect(client))
  const subject: RedisSubject = await contenders.log.open({
    connect: async () => client,
    traffic: 'allowed',
    clock: 'server',
    limit: 100,
    windowMs: 3_600_000,
  })
  return { control, client, subject }
}

async function evalshaCalls(control: Redis): Promise<number> {
  const info = await control.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1])
}

/** A case with the CPU of each contender, round by round. */
function reportOf(cpuUs: Readonly<Record<string, readonly number[]>>): Report {
  const report = new Report()
  const series = Object.entries(cpuUs).map(
    ([name, rounds]): Series => ({
      contender: { name, role: name === 'ours' ? 'ours' : 'peer' },
      rounds: rounds.map((nodeCpuUs) => ({ nodeCpuUs })),
    }),
  )
  report.add('s', 'c', series)
  return report
}
