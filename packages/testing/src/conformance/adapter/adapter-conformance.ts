import { knownFields } from '@sluice/core'
import { fakeClock } from '../../fake-clock.ts'
import { testRunner, type WaitingRunner, waitMsOf } from '../test-runner.ts'
import { AdapterBench, type Serve } from './adapter-bench.ts'
import { admission } from './admission.ts'
import { refusals, storeFailures } from './refusals.ts'
import { requests } from './requests.ts'
import { settlement } from './settlement.ts'

export interface AdapterConformanceOptions extends WaitingRunner {
  /** Starts an application with an adapter, for one test. `Date.now` is stopped meanwhile. */
  readonly serve: Serve
}

/** 2026-11-20T17:30:00.250Z, so that rounding to seconds is visible. */
const startMs = 1_795_195_800_250

const parts = {
  'admitted requests': admission,
  'parts of a request': requests,
  refusals,
  'a store that fails': storeFailures,
  'after the response': settlement,
}

/**
 * Describes the tests that every adapter must pass, over real sockets. They compare statuses,
 * header fields and bodies byte for byte, and cover keys, skips, store failures, leases and
 * refunds.
 * @example
 * adapterConformance({ describe, it, serve: async ({ limits, handle, onError }) => {
 *   const server = await listen(app(limits, handle, onError))
 *   return { url: server.url, close: () => server.close() }
 * } })
 */
export function adapterConformance(options: AdapterConformanceOptions): void {
  knownFields(options, 'adapterConformance', ['describe', 'it', 'serve', 'waitMs'])
  const { describe, it } = testRunner(options, 'adapterConformance')
  const waitMs = waitMsOf(options)
  for (const [part, cases] of Object.entries(parts)) {
    describe(`an adapter: ${part}`, () => {
      for (const [name, test] of Object.entries(cases)) {
        it(name, async () => {
          const clock = fakeClock({ now: startMs })
          const bench = new AdapterBench(options.serve, { clock, waitMs })
          try {
            await test(bench)
          } finally {
            await bench.end()
            clock.restore()
          }
        })
      }
    })
  }
}
