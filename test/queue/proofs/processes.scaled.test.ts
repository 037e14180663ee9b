import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { bullmqBroker } from '@sluice/queue'
import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../support/redis-server.ts'
import { isProof, scaled } from '../../support/scale.ts'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../new-job.ts'
import { endStates } from './end-states.ts'

const poison = new URL('./poison-process.ts', import.meta.url)
const closing = new URL('./closing-process.ts', import.meta.url)

it.runIf(isProof)(
  'gives up a job that ends the process of whoever runs it, and runs the others',
  async () => {
    await using redis = await startRedis()
    const broker = bullmqBroker({ connection: redis.url })
    const jobs = Array.from({ length: 60 }, (_, i) => newJob({ payload: i === 10 ? 'poison' : i }))
    for (const job of jobs) await broker.enqueue(job, roomy)
    let isOver = false
    let kills = 0
    let states: Awaited<ReturnType<typeof endStates>> = []
    const child = { worker: start(poison, redis.url) }
    const restart = (): void => {
      if (isOver) return
      kills += 1
      child.worker = start(poison, redis.url)
      child.worker.once('exit', restart)
    }
    child.worker.once('exit', restart)
    try {
      const ended = async (): Promise<boolean> => (await broker.depth()).depth === 0
      await until('all have ended', ended, { timeoutMs: 90_000 })
      states = await endStates(broker, jobs)
      // The worker tells of it a little later.
      await until('the dead letter is told of', async () => (await redis.cli('LLEN', 'dead')) !== 0)
    } finally {
      isOver = true
      child.worker.kill('SIGKILL')
    }
    expect(states.filter((state) => state === 'done')).toHaveLength(59)
    expect(states[10]).toBe('failed')
    expect(kills).toBe(5)
    const [dead, ...others] = [await redis.cli('LRANGE', 'dead', 0, -1)].flat()
    expect(JSON.parse(String(dead))).toMatchObject({ type: 'dead', id: jobs[10]?.id })
    expect(others).toEqual([])
    await broker.close()
  },
  120_000,
)

it.each(scaled(['frozen'], ['frozen', 'killed', 'never there']))(
  'lets a process end whose Redis is %s',
  async (how) => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const broker = bullmqBroker({ connection: redis.url, onError: () => undefined })
    await broker.enqueue(newJob(), roomy)
    if (how === 'never there') await redis.stop()
    const child = start(closing, redis.url)
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

function start(script: URL, ...args: string[]): ChildProcess {
  const child = fork(fileURLToPath(script), args, {
    execArgv: ['--conditions=@sluice/source', '--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}
