import { type Child, startChild } from '../../support/child.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import type { Figures } from '../harness/figures.ts'
import { choosePinning } from '../harness/pinning.ts'
import { progress } from '../harness/progress.ts'
import { interleave, type Series } from '../harness/rounds.ts'
import { memoryContenders } from '../memory/memory-contenders.ts'
import type { MemoryContender, MemorySetting } from '../memory/memory-subject.ts'
import type { MemoryProtocol } from '../memory/memory-worker.ts'

/** Checks without Redis: what a decision costs in this process, and what a key takes of its heap. */
export const memory: Suite = {
  name: 'memory',
  async run(bench) {
    const workers = startWorkers(bench, memoryContenders)
    const pinning = choosePinning('Node', 'nothing')
    for (const worker of workers.values()) pinning.pin('Node', worker.pid)
    for (const one of memoryCases(bench)) {
      if (bench.isChosen(one.name)) await runMemoryCase(bench, workers, one)
    }
    for (const worker of workers.values()) worker.stop()
  },
}

type Worker = Child<MemoryProtocol>
type Workers = ReadonlyMap<MemoryContender, Worker>

export interface MemoryCase {
  readonly suite: string
  readonly name: string
  readonly setting: MemorySetting
  /** Who takes part. @default everybody */
  readonly includes?: (contender: MemoryContender) => boolean
  /** @default 'decisions' */
  readonly kind?: 'decisions' | 'churn'
  readonly rounds: number
}

const windowMs = 3_600_000
const mainly = (contender: MemoryContender): boolean =>
  contender.role === 'peer' || /sliding-log(, decide\(\))?$/.test(contender.name)

function memoryCases({ quick }: Bench): readonly MemoryCase[] {
  const many = quick ? 50_000 : 1_000_000
  // Filling takes longer than measuring: a million decisions for each contender.
  const common = { suite: 'memory', rounds: quick ? 3 : 5 }
  const ten = { keys: 10_000, limit: quick ? 10 : 100, windowMs }
  return [
    { ...common, name: 'allowed, 10,000 keys', setting: { ...ten, traffic: 'allowed' } },
    {
      ...common,
      name: 'denied, 10,000 keys',
      setting: { ...ten, traffic: 'denied' },
      ...(quick ? { includes: mainly } : {}),
    },
    ...[
      { name: 'allowed, 10 hot keys', keys: 10, limit: 100 },
      { name: 'allowed, one hot key', keys: 1, limit: 1_000 },
      { name: 'allowed, many keys', keys: many, limit: 10 },
    ].map(({ name, ...quota }) => {
      const setting = { ...quota, windowMs, traffic: 'allowed' } as const
      return { ...common, name, setting, includes: mainly }
    }),
    {
      ...common,
      name: 'many fresh keys, which expire',
      setting: { keys: many, limit: 10, windowMs: quick ? 1_000 : 3_000, traffic: 'allowed' },
      includes: (contender) => mainly(contender) && contender.name !== 'sluice sliding-log',
      kind: 'churn',
      rounds: 1,
    },
  ]
}

export async function runMemoryCase(
  bench: Bench,
  workers: Workers,
  one: MemoryCase,
): Promise<void> {
  const { quick, report } = bench
  const { suite, name, includes = () => true, setting, kind, rounds } = one
  const contenders = [...workers.keys()].filter(includes)
  const opened = new Map<MemoryContender, Figures>()

  if (kind !== 'churn') {
    progress(`${suite} · ${name} · filling`)
    await Promise.all(
      contenders.map(async (contender) => {
        const worker = workers.get(contender)
        if (worker) opened.set(contender, await worker.ask('open', setting))
      }),
    )
  }

  const series = await interleave(report, {
    ...{ suite, name, contenders, rounds, roundMs: quick ? 60 : 150 },
    measure: async (contender, durationMs) => {
      const worker = workers.get(contender)
      if (!worker) throw new Error('no worker')
      if (kind === 'churn') return opened.get(contender) ?? churnOnce(worker, contender)
      return worker.ask('round', { durationMs })
    },
  })

  /** One that lasts for seconds, so that the warm-up is the measurement. */
  async function churnOnce(worker: Worker, contender: MemoryContender): Promise<Figures> {
    const figures = await worker.ask('churn', setting)
    opened.set(contender, figures)
    return figures
  }

  report.add(suite, name, kind === 'churn' ? series : series.map(withHeap))

  function withHeap({ contender, rounds }: Series): Series {
    const heap = contenders.find(({ name }) => name === contender.name)
    const figures = heap && opened.get(heap)
    return { contender, rounds: rounds.map((round) => ({ ...round, ...figures })) }
  }
}

/** A process for each, whose heap is its own. */
export function startWorkers({ cleanups }: Bench, contenders: readonly MemoryContender[]): Workers {
  const file = new URL('../memory/memory-worker.ts', import.meta.url)
  return new Map(
    contenders.map((contender) => [
      contender,
      startChild(file, { cleanups, args: [contender.name], execArgv: ['--expose-gc'] }),
    ]),
  )
}
