import { bullmqBroker } from '@sluice/queue'
import { expect, it, onTestFinished } from 'vitest'
import { bundledScript } from '../../support/bundled-script.ts'
import { startChild } from '../../support/child.ts'
import { startRedis } from '../../support/redis-server.ts'
import { isProof, scaled } from '../../support/scale.ts'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { expectPoisonGivenUp } from './poison-run.ts'

const closing = await bundledScript(new URL('./closing-process.ts', import.meta.url))

it.runIf(isProof)('gives up a job that kills its process', { timeout: 120_000 }, async () => {
  await using redis = await startRedis()
  await expectPoisonGivenUp({ redis: redis.url, name: 'jobs' })
})

const ways = scaled(['frozen'], ['frozen', 'killed', 'never there'])
it.each(ways)('lets a process end whose Redis is %s', async (how) => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const observers = { onError: () => undefined }
  const broker = bullmqBroker({ connection: redis.url, deadlineMs: 15_000, observers })
  await broker.enqueue(newJob(), roomy)
  if (how === 'never there') await redis.stop()
  const running: number[] = []
  const child = startChild<never, number>(closing, {
    args: [redis.url],
    onTold: (count) => void running.push(count),
  })
  onTestFinished(child.stop)
  await until('it runs', () => running.at(-1) === (how === 'never there' ? 0 : 1))
  if (how === 'frozen') redis.pause()
  if (how === 'killed') await redis.kill()
  child.process.kill('SIGTERM')
  expect(await child.ended).toBe(0)
  await broker.close()
})
