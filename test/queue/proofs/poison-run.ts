import { expect } from 'vitest'
import { bundledScript } from '../../support/bundled-script.ts'
import { type Child, startChild } from '../../support/child.ts'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../broker-bench.ts'
import { type BrokerPlace, endStates, openBroker } from './open-broker.ts'

const script = await bundledScript(new URL('./worker-process.ts', import.meta.url))

/** Has workers run 60 jobs, one of which kills its process, and expects the outcome that all brokers promise. */
export async function expectPoisonGivenUp(place: BrokerPlace): Promise<void> {
  const { broker, client } = openBroker(place)
  const jobs = Array.from({ length: 60 }, (_, i) => newJob({ payload: i === 10 ? 'poison' : i }))
  for (const job of jobs) await broker.enqueue(job, roomy)
  let isOver = false
  let kills = 0
  let states: Awaited<ReturnType<typeof endStates>> = []
  const startWorker = (): Child<never> => {
    const worker = startChild<never>(script, { args: [JSON.stringify(place), '20', '5', '50'] })
    void worker.ended.then(() => {
      if (isOver) return
      kills += 1
      child.worker = startWorker()
    })
    return worker
  }
  const child = { worker: startWorker() }
  try {
    const ended = async (): Promise<boolean> => (await broker.depth()).depth === 0
    await until('all have ended', ended, { timeoutMs: 90_000 })
    states = await endStates(broker, jobs)
    // The worker tells of it a little later.
    await until('the dead letter is told of', async () => (await client.llen('dead')) !== 0)
  } finally {
    isOver = true
    child.worker.stop()
  }
  expect(states.filter((state) => state === 'done')).toHaveLength(59)
  expect(states[10]).toBe('failed')
  expect(kills).toBe(5)
  const [dead = '', ...others] = await client.lrange('dead', 0, -1)
  expect(JSON.parse(dead)).toMatchObject({ type: 'dead', id: jobs[10]?.id })
  expect(others).toEqual([])
  await broker.close()
  client.disconnect()
}
