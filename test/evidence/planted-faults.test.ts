import { rm } from 'node:fs/promises'
import * as core from '@sluice/core'
import * as redisPackage from '@sluice/redis'
import { checkHistory, type Finding } from '@sluice/testing/histories'
import fc from 'fast-check'
import { afterEach, describe, expect, vi } from 'vitest'
import { it } from '../support/redis-test.ts'
import { note } from './figures.ts'
import { brokenBy, type Core, fleetKinds, plans, runFleet } from './fleet.ts'
import { plant, plantedFaults } from './planted-faults.ts'
import { runSequence, sequences } from './sequence.ts'

type Redis = Parameters<typeof redisPackage.redisStore>[0]
type Product = Core & Pick<typeof redisPackage, 'redisStore'>
const product: Product = { ...core, ...redisPackage }
let opened = 0

afterEach(() => vi.restoreAllMocks())

async function findingsOf(
  { redisStore, ...some }: Product,
  shownBy: string,
  client: Redis,
): Promise<readonly Finding[]> {
  const kind = fleetKinds[shownBy]
  for (const plan of kind ? fc.sample(plans, { numRuns: 15, seed: 1 }) : []) {
    const broken = brokenBy(kind ?? {}, await runFleet(some, kind ?? {}, plan))
    if (broken.length > 0) return broken
  }
  const [algorithm = '', onRedis] = shownBy.split(' on ')
  for (const steps of kind ? [] : fc.sample(sequences, { numRuns: onRedis ? 8 : 40, seed: 1 })) {
    let now = 0
    opened += 1
    const options = { prefix: `planted${opened}`, clock: () => now, heartbeatMs: 0 } as const
    const store = onRedis ? redisStore(client, options) : some.memoryStore()
    const setNow = (ms: number) => {
      now = ms
    }
    if (!onRedis) vi.spyOn(Date, 'now').mockImplementation(() => now)
    const { lines, law } = await runSequence(store, setNow, { algorithm, steps })
    await store.close?.()
    const { findings } = checkHistory(lines, { a: law })
    if (findings.length > 0) return findings
  }
  return []
}

describe('the checker of histories', () => {
  it.for([...new Set(plantedFaults.map(({ shownBy }) => shownBy))])(
    'finds nothing in the product that decides by %s',
    { timeout: 60_000 },
    async (shownBy, { client, task }) => {
      note(task, { soundWays: 1 })
      expect(await findingsOf(product, shownBy, client)).toEqual([])
    },
  )

  it.for(plantedFaults)(
    'finds a fault in $file, shown by $shownBy: $replace',
    { timeout: 60_000 },
    async (fault, { client, task }) => {
      note(task, { faults: 1 })
      const bundle = await plant(fault)
      const faulty = { ...product, ...(await import(/* @vite-ignore */ bundle)) }
      await rm(bundle)
      expect(await findingsOf(faulty, fault.shownBy, client)).not.toEqual([])
    },
  )
})
