import {
  type AlgorithmName,
  algorithmNames,
  knownFields,
  type MaybePromise,
  type Store,
} from '@sluice/core'
import { fakeClock } from '../../fake-clock.ts'
import { type TestRunner, testRunner } from '../test-runner.ts'
import { decisions } from './decisions.ts'
import { followUps, forLeases, forUnits } from './follow-ups.ts'
import { StoreBench, type StoreCase, takesLeases } from './store-bench.ts'
import { timeAndTraces } from './time-and-traces.ts'

/** A store for one test. */
export interface OpenedStore {
  readonly store: Store
  /** Releases everything that was opened. @default closes the store */
  close?(): MaybePromise<unknown>
}

export interface StoreConformanceOptions extends TestRunner {
  /**
   * Opens an empty store for one test. `Date.now` is stopped meanwhile.
   * @param clock the only clock that the store may use, in ms since 1970
   */
  open(clock: () => number): MaybePromise<OpenedStore>
}

/** A multiple of the window, so that no test crosses the edge of an aligned window by chance. */
const startMs = 1_795_195_800_000

/**
 * Describes the tests that every store must pass, for each algorithm. They cover exact limits,
 * atomicity, refunds, resets, leases and clock steps, and compare the answers with `memoryStore`.
 * @example
 * storeConformance({ describe, it, open: (clock) => ({ store: mapStore({ clock }) }) })
 */
export function storeConformance(options: StoreConformanceOptions): void {
  knownFields(options, 'storeConformance', ['describe', 'it', 'open'])
  const { describe, it } = testRunner(options, 'storeConformance')
  for (const algorithm of algorithmNames) {
    const own = takesLeases(algorithm) ? forLeases : forUnits
    const cases = { ...decisions, ...followUps, ...own, ...timeAndTraces }
    describe(`a store: ${algorithm}`, () => {
      for (const [name, test] of Object.entries(cases)) {
        it(name, () => run(test, options, algorithm))
      }
    })
  }
}

async function run(
  test: StoreCase,
  { open }: StoreConformanceOptions,
  algorithm: AlgorithmName,
): Promise<void> {
  const clock = fakeClock({ now: startMs })
  try {
    const { store, close = () => store.close?.() } = await open(clock)
    const bench = new StoreBench(store, clock, algorithm)
    try {
      await test(bench)
    } catch (error) {
      throw bench.failure ?? error
    } finally {
      await close()
    }
    if (bench.failure) throw bench.failure
  } finally {
    clock.restore()
  }
}
