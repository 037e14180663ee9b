import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker, NewJob } from '@sluice/queue'
import { bundledScript } from '../../support/bundled-script.ts'
import { type Child, startChild } from '../../support/child.ts'
import { mostWithin } from '../../support/most-within.ts'
import { startRabbitmq } from '../../support/rabbitmq-server.ts'
import { startRedis } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import { newJob } from '../broker-bench.ts'
import { endStates, openBroker } from './open-broker.ts'

export interface KillPlan {
  readonly workers: number
  readonly jobs: number
  /** One worker is killed a second. */
  readonly kills: number
  /** RabbitMQ delivers the jobs, and is killed this often in between, and started again. Without it BullMQ does. */
  readonly brokerKills?: number
  /** Runs that may start a second. */
  readonly limit: number
}

const concurrency = 5
const jobMs = 20
const terms = { maxDepth: 1_000_000, maxDepthPerIdentity: 1_000_000, retentionMs: 3_600_000 }

/** Kills one of several workers every second while they run jobs, and says what became of the jobs. */
export async function killRun(plan: KillPlan) {
  const { workers, jobs, kills, limit, brokerKills = 0 } = plan
  await using redis = await startRedis()
  await using rabbitmq = brokerKills > 0 ? await startRabbitmq() : undefined
  const place = { redis: redis.url, rabbitmq: rabbitmq?.url, name: 'kills' }
  const { broker, client } = openBroker(place)
  const killed = new Set<number>()
  const outages: number[] = []
  const children: Child<never>[] = []
  const startWorker = (): void => {
    const args = [JSON.stringify(place), ...[limit, concurrency, jobMs].map(String)]
    children.push(startChild(script, { args }))
  }
  const killWorker = (): void => {
    const victim = children.shift()
    if (victim) killed.add(victim.pid)
    startWorker()
    victim?.stop()
  }
  try {
    const queued = Array.from({ length: jobs }, (_, page) => newJob({ payload: { page } }))
    const feeding = feed(broker, queued, limit)
    for (let i = 0; i < workers; i += 1) startWorker()
    const beganAt = Date.now()
    await until('the workers have begun', async () => (await client.llen('started')) > 0)
    const betweenOutages = Math.floor((kills + brokerKills) / (brokerKills + 1))
    for (let i = 1; i <= kills + brokerKills; i += 1) {
      await sleep(1_000)
      if (rabbitmq && i % betweenOutages === 0 && outages.length < brokerKills) {
        outages.push(Date.now())
        await rabbitmq.kill()
        await rabbitmq.restart()
      } else killWorker()
    }
    const refused = await feeding
    const timeoutMs = 60_000 + (jobs / limit) * 2_000
    await until('all jobs have ended', async () => (await broker.depth()).depth === 0, {
      timeoutMs,
    })
    const seconds = (Date.now() - beganAt) / 1_000
    const states = await endStates(broker, queued)
    const starts = (await client.lrange('started', 0, -1)).map((text) => JSON.parse(text) as Start)
    const startedAt = starts.map(({ at }) => at)
    return {
      done: states.filter((state) => state === 'done').length,
      starts: starts.length,
      ...repeats(starts, killed, outages),
      /** Enqueues that were refused, and asked again with the same idempotency key. */
      refused,
      mostInOneSecond: mostWithin(startedAt, 1_000),
      /** What `mostInOneSecond` may be: a start can be late by the way of one answer, and a process asks once at a time. */
      bound: limit + workers,
      seconds,
    }
  } finally {
    for (const child of children) child.stop()
    await Promise.all(children.map(({ ended }) => ended))
    await broker.close()
    client.disconnect()
  }
}

/** Enqueues jobs about as fast as they run, each until it is accepted. Returns how often one was refused. */
async function feed(broker: Broker, jobs: readonly NewJob[], limit: number): Promise<number> {
  const waiting = [...jobs]
  const lanes = 4
  let refused = 0
  const lane = async (): Promise<void> => {
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      const idempotency = { key: job.id, fingerprint: '' }
      for (;;) {
        const answer = await broker.enqueue(job, { ...terms, idempotency }).catch(() => undefined)
        if (answer?.outcome === 'enqueued' || answer?.outcome === 'known') break
        refused += 1
        await sleep(200)
      }
      await sleep((lanes * 800) / limit)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return refused
}

const script = await bundledScript(new URL('./worker-process.ts', import.meta.url))

interface Start {
  readonly id: string
  readonly at: number
  readonly pid: number
}

/** How long (ms) after a start a lost channel may be what its run was repeated for. */
const lostWithinMs = 5_000

/** Counts repeated starts. A killed worker explains one, or a channel that was lost when the broker was killed. */
function repeats(starts: readonly Start[], killed: Set<number>, outages: readonly number[]) {
  const last = new Map<string, Start>()
  const found = { repeated: 0, byKilledWorkers: 0, byKilledBroker: 0, unexplained: 0 }
  for (const start of starts) {
    const before = last.get(start.id)
    last.set(start.id, start)
    if (!before) continue
    found.repeated += 1
    const wasLost = outages.some((at) => at >= before.at && at - before.at < lostWithinMs)
    if (killed.has(before.pid)) found.byKilledWorkers += 1
    else if (wasLost) found.byKilledBroker += 1
    else found.unexplained += 1
  }
  return found
}
