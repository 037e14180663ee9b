import { type Decision, isSluiceError, type Limiter } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { type RegionName, startThreeServers, type ThreeServers } from './three-servers.ts'

let servers: ThreeServers
let opened = 0

beforeAll(async () => {
  servers = await startThreeServers()
})

afterAll(() => servers[Symbol.asyncDispose]())

/** A prefix of its own for each test. */
function namespace(): string {
  opened += 1
  return `regions${opened}`
}

const hourly = { name: 'api', limit: 10, window: '1h' } as const

async function limiterOf(region: RegionName, prefix: string, options = {}) {
  const { store, toGlobal } = await servers.open(region, { redis: { prefix } })
  const limiter = patientLimiter({ policies: [hourly], store, failureMode: 'closed', ...options })
  return { limiter, store, toGlobal }
}

/** Consumes until it is refused. Returns the number of requests that passed. */
async function exhaust(limiter: Limiter, key = 'user'): Promise<number> {
  for (let passed = 0; ; passed += 1) {
    if (!(await limiter.consume(key)).allowed) return passed
  }
}

describe('a limit of two regions', () => {
  it('is a share for each region, and a pool', async () => {
    const prefix = namespace()
    const eu = await limiterOf('eu', prefix)
    const us = await limiterOf('us', prefix)
    // Its share of 4, and the pool of 2.
    expect(await exhaust(eu.limiter)).toBe(6)
    expect(await exhaust(us.limiter)).toBe(4)
  })

  it('keeps the share of a region that is cut off, and refuses what it would borrow', async () => {
    const prefix = namespace()
    const eu = await limiterOf('eu', prefix)
    const us = await limiterOf('us', prefix)
    await eu.toGlobal.refuse()
    expect(await exhaust(eu.limiter)).toBe(4)
    expect(await exhaust(us.limiter)).toBe(6)
    await eu.toGlobal.accept()
  })
})
