import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bullmqBroker } from '@sluice/queue'
import { startRedis } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import { newJob } from '../new-job.ts'
import { mostWithin } from '../rolling.ts'
import { endStates } from './end-states.ts'

export interface KillPlan {
  readonly workers: number
  readonly jobs: number
  /** One worker is killed a second. */
  readonly kills: number
  /** Runs that may start a second. */
  readonly limit: number
}

export interface KillReport {
  readonly done: number
  readonly starts: number
  /** Starts of a job that had been started before. */
  readonly repeated: number
  /** Those whose earlier run no worker ended, but for a kill: it is what it was killed in. */
  readonly unexplained: number
  readonly mostInOneSecond: number
  /** What `mostInOneSecond` may be: a start can be late by the way of one answer, and a process asks once at a time. */
  readonly bound: number
  readonly seconds: number
}

const concurrency = 5
const jobMs = 20
const terms = { maxDepth: 1_000_000, maxDepthPerIdentity: 1_000_000, retentionMs: 3_600_000 }

/** Kills one of several workers every second while they run jobs, and says what became of the jobs. */
export async function killRun({ workers, jobs, kills, limit }: KillPlan): Promise<KillReport> {
  await using redis = await startRedis()
  const name = 'kills'
  const broker = bullmqBroker({ connection: redis.url, name })
  const killed = new Set<number>()
  const children: ChildProcess[] = []
  const startWorker = (): void => {
    const args = [redis.url, name, limit, concurrency, jobMs].map(String)
    children.push(
      fork(fileURLToPath(new URL('./worker-process.ts', import.meta.url)), args, options),
    )
  }
  try {
    const queued = Array.from({ length: jobs }, (_, page) => newJob({ payload: { page } }))
    for (const job of queued) await broker.enqueue(job, terms)
    for (let i = 0; i < workers; i += 1) startWorker()
    const beganAt = Date.now()
    await until('the workers have begun', async () => (await count(redis, 'started')) > 0)
    for (let i = 0; i < kills; i += 1) {
      await sleep(1_000)
      const victim = children.shift()
      if (victim?.pid) killed.add(victim.pid)
      startWorker()
      victim?.kill('SIGKILL')
    }
    const timeoutMs = 60_000 + (jobs / limit) * 2_000
    await until('all jobs have ended', async () => (await broker.depth()).depth === 0, {
      timeoutMs,
    })
    const seconds = (Date.now() - beganAt) / 1_000
    const states = await endStates(broker, queued)
    const starts = (await list(redis, 'started')).map((text) => JSON.parse(text) as Start)
    return {
      done: states.filter((state) => state === 'done').length,
      starts: starts.length,
      ...repeats(starts, killed),
      mostInOneSecond: mostWithin(
        starts.map(({ at }) => at),
        1_000,
      ),
      bound: limit + workers,
      seconds,
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(
      children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')),
    )
    await broker.close()
  }
}

const options = {
  execArgv: ['--conditions=@sluice/source', '--import', 'tsx'],
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'] as ('ignore' | 'inherit' | 'ipc')[],
}

interface Start {
  readonly id: string
  readonly at: number
  readonly pid: number
}

interface Server {
  cli(...args: (string | number)[]): Promise<unknown>
}

/** Every run of a job but the last one is to be one that a killed worker was in. */
function repeats(
  starts: readonly Start[],
  killed: ReadonlySet<number>,
): Pick<KillReport, 'repeated' | 'unexplained'> {
  const last = new Map<string, Start>()
  let repeated = 0
  let unexplained = 0
  for (const start of starts) {
    const before = last.get(start.id)
    last.set(start.id, start)
    if (!before) continue
    repeated += 1
    if (!killed.has(before.pid)) unexplained += 1
  }
  return { repeated, unexplained }
}

async function count(redis: Server, key: string): Promise<number> {
  return Number(await redis.cli('LLEN', key))
}

async function list(redis: Server, key: string): Promise<string[]> {
  const reply = await redis.cli('LRANGE', key, 0, -1)
  return Array.isArray(reply) ? reply.map(String) : []
}
