import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
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

const size = 3

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
  it('has a change whole or not at all when the process that makes it is killed', async () => {
    await start(3)
    for (let turn = 0; turn < 20; turn += 1) {
      const [victim] = fleet
      if (!victim) throw new Error('no process')
      victim.child.send({ type: 'limit', limit: first + turn + 1, of: -1 })
      await sleep(turn)
      victim.kill()
      fleet = [...fleet.slice(1), ...(await startFleet([[path, server.url]]))]
    }
    const changer = fleet[0]
    const { version = '' } = (await changer?.ask({ type: 'kill' })) ?? {}
    await inForce(numberOf(version))
    const reports = await Promise.all(fleet.map((each) => each.ask({ type: 'report' })))
    expect(reports.flatMap(({ mixed = [] }) => mixed)).toEqual([])
    expect(new Set(reports.map(({ status }) => status?.number)).size).toBe(1)
  }, 180_000)

  it('refuses a change while Redis is frozen, and takes changes again afterwards', async () => {
    const changer = await start()
    server.pause()
    const failed = await changer.ask({ type: 'limit', limit: first + 1 })
    expect(failed).toMatchObject({ type: 'failed' })
    server.resume()
    await until('a change goes through again', async () => {
      const answer = await changer.ask({ type: 'limit', limit: first + 2 })
      return answer.type === 'changed'
    })
    await inForce(changer.number)
  }, 60_000)

  it('runs the file without Redis, and has the kill switch of the environment', async () => {
    const nobody = 'redis://127.0.0.1:1'
    fleet = await startFleet([[path, nobody]], { SLUICE_KILL_SWITCH: 'shadow' })
    await writeFile(path, both(7))
    await until('the new file is in force', () => {
      return (fleet[0]?.told.filter(({ type }) => type === 'version').length ?? 0) >= 2
    })
  }, 60_000)

  it('keeps the old version where a process cannot build the new one', async () => {
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
      const { status } = (await having?.ask({ type: 'report' })) ?? {}
      return new Set(status?.fleet.map(({ version }) => version)).size === 2
    })
  }, 60_000)
})
