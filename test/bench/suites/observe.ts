import type { Suite } from '../harness/bench.ts'
import { observeContenders } from '../memory/sluice-memory.ts'
import { memoryWorkers, runMemoryCase } from './memory.ts'

/** What it costs a decision to be observed. */
export const observe: Suite = {
  name: 'observe',
  async run(bench) {
    // Filled by 100,000 requests each, so that the JIT is done.
    for (const [name, keys, limit] of [
      ['a decision, 500 keys', 500, 200],
      ['a decision, 10,000 keys in turn', 10_000, 10],
    ] as const) {
      if (!bench.isChosen(name)) continue
      const workers = memoryWorkers(bench, observeContenders)
      const setting = { keys, limit, windowMs: 3_600_000, traffic: 'allowed' } as const
      const rounds = bench.quick ? 9 : 25
      await runMemoryCase(bench, workers, { suite: 'observe', name, setting, rounds })
      workers.stop()
    }
  },
}
