import type { Bench, Suite } from '../harness/bench.ts'
import { choosePinning } from '../harness/pinning.ts'
import { interleave, openEach } from '../harness/rounds.ts'
import { startWorkers, type Workers } from '../harness/workers.ts'
import { memoryContenders } from '../memory/memory-contenders.ts'
import type { MemoryContender, MemorySetting } from '../memory/memory-subject.ts'
import type { MemoryProtocol } from '../memory/memory-worker.ts'

/** Checks without Redis: what a decision costs in this process, and what a key takes of its heap. */
export const memory: Suite = {
  name: 'memory',
  async run(bench) {
    const workers = memoryWorkers(bench, memoryContenders)
    const pinning = choosePinning('Node', 'nothing')
    for (const { pid } of workers.all) pinning.pin('Node', pid)
    for (const one of memoryCases(bench)) {
      if (bench.isChosen(one.name)) await runMemoryCase(bench, workers, one)
    }
    workers.stop()
  },
}

type MemoryWorkers = Workers<MemoryProtocol, MemoryContender>

export interface MemoryCase {
  readonly suite: string
  readonly name: string
  readonly setting: MemorySetting
  /** Who takes part. @default everybody */
  readonly includes?: (contender: MemoryContender) => boolean
  /** What comes before the rounds; a churn takes their place. @default 'open' */
  readonly first?: 'open' | 'churn'
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
      first: 'churn',
      rounds: 1,
    },
  ]
}

export async function runMemoryCase(
  { quick, report }: Bench,
  workers: MemoryWorkers,
  { suite, name, includes = () => true, first = 'open', setting, rounds }: MemoryCase,
): Promise<void> {
  const opened = await openEach(report, {
    ...{ suite, name, contenders: workers.contenders.filter(includes) },
    async open(contender) {
      const worker = workers.of(contender)
      return { worker, figures: await worker.ask(first, setting) }
    },
  })
  const series = await interleave(report, {
    ...{ suite, name, opened, rounds, roundMs: quick ? 60 : 150 },
    async measure({ worker, figures }, durationMs) {
      // It lasts for seconds, and warms itself up.
      if (first === 'churn') return figures
      return { ...(await worker.ask('round', { durationMs })), ...figures }
    },
  })
  report.add(suite, name, series)
}

export function memoryWorkers(bench: Bench, contenders: readonly MemoryContender[]): MemoryWorkers {
  return startWorkers(bench, '../memory/memory-worker.ts', {
    contenders,
    execArgv: ['--expose-gc'],
  })
}
