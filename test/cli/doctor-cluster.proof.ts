import { expect, it } from 'vitest'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { runSluice } from './run-sluice.ts'

it('sluice doctor checks a Cluster, including a decision', async () => {
  await using cluster = await startRedisCluster()
  const [master] = await cluster.masters()
  const env = { REDIS_URL: master?.url }
  const { stdout, exitCode } = await runSluice(['doctor', '--json'], { env })
  const { findings } = JSON.parse(stdout)
  expect(findings).toContainEqual({
    check: 'cluster',
    severity: 'ok',
    seen: expect.stringContaining('3 masters with 6 nodes'),
  })
  expect(findings).toContainEqual(expect.objectContaining({ check: 'decision', severity: 'ok' }))
  expect(exitCode).toBe(0)
}, 60_000)
