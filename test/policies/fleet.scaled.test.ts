import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect } from 'vitest'
import type { RedisServer } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'
import { isProof, scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { both, type FleetProcess, type FleetReport, numberOf, startFleet } from './fleet.ts'
import { policyFolder } from './policy-folder.ts'

const first = 1_000_000

let server: RedisServer
let path: string
let fleet: FleetProcess[] = []

it.beforeEach(async ({ redis }) => {
  server = redis
  await server.cli('FLUSHALL')
  path = await policyFolder(both(first))
})

afterEach(() => {
  for (const each of fleet.splice(0)) each.kill()
})

async function start(count = 3): Promise<FleetProcess> {
  fleet = await startFleet(Array.from({ length: count }, () => [path, server.url]))
  const [changer] = fleet
  if (!changer) throw new Error('no process')
  return changer
}

async function inForce(number: number): Promise<void> {
  const isInForce = () => fleet.every((each) => each.newest() >= number)
  await until(`changes ${number} are in force`, isInForce)
}

describe('a fleet whose policies change', () => {
  it('applies each change within about a second, decides by one version, and loses no count', async () => {
    const size = scaled(2, 8)
    const changer = await start(size)
    const changes: { number: number; at: number }[] = []
    for (let index = 1; index <= scaled(4, 200); index += 1) {
      const { version, at } = await changer.ask('limit', first + index)
      changes.push({ number: numberOf(version), at })
      await sleep(scaled(300, 150))
    }
    await inForce(changes.at(-1)?.number ?? 0)
    const delays = changes
      .flatMap(({ number, at }) => fleet.map((each) => (each.inForceAt(number) ?? Infinity) - at))
      .sort((one, other) => one - other)
    const p99 = delays[Math.ceil(delays.length * 0.99) - 1]
    console.info(`in force after ${delays[delays.length >> 1]} ms (median), ${p99} ms (p99)`)
    if (isProof) expect(p99).toBeLessThanOrEqual(1_500)

    for (const each of fleet) void each.ask('rest', undefined)
    let decided = 0
    let reports: readonly FleetReport[] = []
    await until('all decisions are counted, by both policies', async () => {
      reports = await Promise.all(fleet.map((each) => each.ask('report', undefined)))
      decided = reports.reduce((sum, report) => sum + report.decided, 0)
      return reports[0]?.used.every((units) => units === decided) === true
    })
    expect(reports.flatMap(({ mixed }) => mixed)).toEqual([])
    expect(decided).toBeGreaterThan(0)
    expect(reports[0]?.status.fleet).toHaveLength(size)
  }, 180_000)
})

describe.runIf(isProof)('a fleet with faults', () => {
  it('applies a change completely or not at all when its process is killed', async () => {
    await start()
    for (let turn = 0; turn < 20; turn += 1) {
      const [victim] = fleet
      if (!victim) throw new Error('no process')
      victim.ask('limit', first + turn + 1).catch(() => undefined)
      await sleep(turn)
      victim.kill()
      fleet = [...fleet.slice(1), ...(await startFleet([[path, server.url]]))]
    }
    // A change of one that was killed may come first.
    await until('a change goes through', async () => {
      const { version = '' } = (await fleet[0]?.ask('limit', first)) ?? {}
      await inForce(numberOf(version))
      return true
    })
    const reports = await Promise.all(fleet.map((each) => each.ask('report', undefined)))
    expect(reports.flatMap(({ mixed }) => mixed)).toEqual([])
    expect(new Set(reports.map(({ status }) => status.number)).size).toBe(1)
  }, 180_000)

  it('runs the file without Redis, and has the kill switch of the environment', async () => {
    fleet = await startFleet([[path, 'redis://127.0.0.1:1']], { SLUICE_KILL_SWITCH: 'shadow' })
    await writeFile(path, both(7))
    await until('the new file is in force', () => {
      return (fleet[0]?.told.filter(({ type }) => type === 'version').length ?? 0) >= 2
    })
  }, 60_000)

  it('keeps the old version if a process cannot build the new one', async () => {
    fleet = await startFleet([
      [path, server.url],
      [path, server.url, 'device'],
    ])
    const [without, having] = fleet
    await writeFile(path, both(first, ', key: device'))
    await until('one refuses', () => without?.told.some(({ type }) => type === 'refused') === true)
    const versions = () => having?.told.filter(({ type }) => type === 'version') ?? []
    await until('the other one takes it', () => versions().length >= 2)
    await until('the fleet knows of both', async () => {
      const { status } = (await having?.ask('report', undefined)) ?? {}
      return new Set(status?.fleet.map(({ version }) => version)).size === 2
    })
  }, 60_000)
})
