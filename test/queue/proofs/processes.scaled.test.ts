import { once } from 'node:events'
import { bullmqBroker } from '@sluice/queue'
import { expect, it, onTestFinished } from 'vitest'
import { bundledScript } from '../../support/bundled-script.ts'
import { startRedis } from '../../support/redis-server.ts'
import { isProof, scaled } from '../../support/scale.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { expectPoisonGivenUp, startProcess } from './poison-run.ts'

const closing = await bundledScript(new URL('./closing-process.ts', import.meta.url))

it.runIf(isProof)(
  'gives up a job that ends the process of whoever runs it, and runs the others',
  async () => {
    await using redis = await startRedis()
    await expectPoisonGivenUp({ redis: redis.url, name: 'jobs' })
  },
  120_000,
)

it.each(scaled(['frozen'], ['frozen', 'killed', 'never there']))(
  'lets a process end whose Redis is %s',
  async (how) => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const broker = bullmqBroker({ connection: redis.url, observers: { onError: () => undefined } })
    await broker.enqueue(newJob(), roomy)
    if (how === 'never there') await redis.stop()
    const child = startProcess(closing, redis.url)
    await new Promise<void>((resolve) => {
      child.on('message', ({ running }: { running: number }) => {
        if (running === 1 || how === 'never there') resolve()
      })
    })
    if (how === 'frozen') redis.pause()
    if (how === 'killed') await redis.kill()
    const startedAt = performance.now()
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    await broker.close()
  },
)
