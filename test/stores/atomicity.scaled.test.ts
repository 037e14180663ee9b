import type { PolicyOptions } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect, it } from 'vitest'
import { bundledScript } from '../support/bundled-script.ts'
import { startChild } from '../support/child.ts'
import { lastVersion } from '../support/last-version.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { isProof, scaled } from '../support/scale.ts'
import type { BurstProtocol } from './atomicity-worker.ts'

const { redis, client } = await redisOfFile()

const worker = new URL('atomicity-worker.ts', import.meta.url)
const script = await bundledScript(worker)
const packagesBefore = isProof ? lastVersion() : undefined
const scriptBefore = packagesBefore && (await bundledScript(worker, packagesBefore))

/** Each process asks 500 times, so three ask for more than every limit here. */
const processes = scaled(3, 8)

/** How many of 500 requests of each process, all at once, a fleet admits. */
async function admittedByFleet(
  policies: readonly PolicyOptions[],
  scripts: readonly string[] = [script],
): Promise<number> {
  const args = [redis.url, JSON.stringify(policies)]
  const fleet = Array.from({ length: processes }, (_, index) =>
    startChild<BurstProtocol>(scripts[index % scripts.length] ?? script, { args }),
  )
  await Promise.all(fleet.map((child) => child.ask('connect', undefined)))
  const counts = await Promise.all(fleet.map((child) => child.ask('admitted', undefined)))
  for (const child of fleet) child.stop()
  return counts.reduce((sum, count) => sum + count, 0)
}

const hourly: readonly PolicyOptions[] = [
  { algorithm: 'sliding-log', limit: 1_234, window: '1h' },
  { algorithm: 'sliding-counter', limit: 1_234, window: '1h' },
  { algorithm: 'fixed-window', limit: 1_234, window: '1h' },
  // So slow that nothing comes back meanwhile.
  { algorithm: 'token-bucket', limit: 1, burst: 1_234, window: '365d' },
  { algorithm: 'leaky-bucket', limit: 1, queue: 1_233, maxDelay: '24d', window: '20m' },
  { algorithm: 'concurrency', limit: 1_234, lease: '10m' },
]

describe(`${processes} processes with 500 requests each on one key`, { timeout: 60_000 }, () => {
  it.each(scaled([], hourly))('admit exactly the limit by $algorithm', async (policy) => {
    expect(await admittedByFleet([{ name: 'p', ...policy }])).toBe(1_234)
  })

  it
    .runIf(scriptBefore)
    .each([
      ...hourly,
      { algorithm: 'sliding-log', limit: 1_234, window: '1h', prefetch: '1s' },
    ] satisfies PolicyOptions[])(
    'admit exactly the limit by $algorithm, half of them of the last version',
    async (policy) => {
      const admitted = await admittedByFleet(
        [{ name: 'both', ...policy }],
        [script, scriptBefore ?? script],
      )
      // What was granted to a process and not asked for ends unused.
      if ('prefetch' in policy) expect(admitted).toBeLessThanOrEqual(1_234)
      else expect(admitted).toBe(1_234)
    },
  )

  it('admit exactly the tighter of two limits, and charge the other exactly that', async () => {
    const policies: PolicyOptions[] = [
      { name: 'tight', limit: 777, window: '1h' },
      { name: 'loose', limit: 3_000, window: '1d' },
    ]
    expect(await admittedByFleet(policies)).toBe(777)
    const limiter = patientLimiter({ store: redisStore(client), policies })
    const { outcomes } = await limiter.peek('everybody')
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([0, 3_000 - 777])
  })
})
