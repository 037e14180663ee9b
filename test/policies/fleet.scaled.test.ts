import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { both, type FleetProcess, numberOf, startFleet } from './fleet.ts'
import { policyFolder } from './policy-folder.ts'

const first = 1_000_000

let server: RedisServer
let path: string
let fleet: FleetProcess[] = []

beforeEach(async () => {
  server = await startRedis()
  path = await policyFolder(both(first))
})

afterEach(async () => {
  for (const each of fleet.splice(0)) each.kill()
  await server.stop()
})

const size = scaled(2, 8)

async function start(count = size): Promise<FleetProcess> {
  fleet = await startFleet(Array.from({ length: count }, () => [path, server.url]))
  const [changer] = fleet
  if (!changer) throw new Error('no process')
  return changer
}

async function inForce(number: number): Promise<void> {
  await until(`changes ${number} are in force`, () => fleet.every((each) => each.number >= number))
}

describe('a fleet whose policies change', () => {
  it('has each change in force within a second or so, decides by one version, and loses no count', async () => {
    const changer = await start()
    const changes: { number: number; at: number }[] = []
    for (let index = 1; index <= scaled(4, 200); index += 1) {
      const {
        version = '',
        at,
        message,
      } = await changer.ask({ type: 'limit', limit: first + index })
      expect(message).toBeUndefined()
      changes.push({ number: numberOf(version), at })
      await sleep(scaled(300, 150))
    }
    const last = changes.at(-1)?.number ?? 0
    await inForce(last)
    const delays = changes
      .flatMap(({ number, at }) => fleet.map((each) => (each.inForceAt(number) ?? Infinity) - at))
      .sort((one, other) => one - other)
    const p99 = delays[Math.ceil(delays.length * 0.99) - 1]
    console.info(`in force after ${delays[delays.length >> 1]} ms (median), ${p99} ms (p99)`)
    expect(p99).toBeLessThanOrEqual(scaled(5_000, 1_500))

    for (const each of fleet) each.child.send({ type: 'rest' })
    await sleep(1_000)
    const reports = await Promise.all(fleet.map((each) => each.ask({ type: 'report' })))
    const decided = reports.reduce((sum, report) => sum + (report.decided ?? 0), 0)
    expect(reports.flatMap(({ mixed = [] }) => mixed)).toEqual([])
    expect(decided).toBeGreaterThan(0)
    expect(reports[0]?.used).toEqual([decided, decided])
    expect(reports[0]?.status?.fleet).toHaveLength(size)
  }, 180_000)

  it('lets one of two editors win, and tells the other of the conflict', async () => {
    await start(2)
    const answers = await Promise.all(
      fleet.map((each, index) => each.ask({ type: 'limit', limit: first + 1 + index })),
    )
    expect(answers.map(({ type }) => type).sort()).toEqual(['changed', 'failed'])
    expect(answers.find(({ type }) => type === 'failed')?.message).toContain('somebody else')
    await inForce(1)
    const loser = fleet.find((_, index) => answers[index]?.type === 'failed')
    expect(await loser?.ask({ type: 'limit', limit: first + 9 })).toMatchObject({ type: 'changed' })
  }, 60_000)
})
