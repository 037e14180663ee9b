import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Tests run from the sources: the condition makes every @sluice import resolve to src, without a build.
// Only what is not there by itself: vitest hands them to Node too, where `import` would give ESM builds to every require().
const conditions = ['@sluice/source', 'node']

/** What measures time and memory: beside no other files. Each is short in `npm test`, and mostly waits, so that they run at once. */
const alone = ['faults/{faults,leaks}.scaled.test.ts', 'policies/fleet.scaled.test.ts']
/** The same in the proofs, and all that stops servers. They mostly wait, so that three of them run at a time. */
const aloneInProofs = [
  'budgets/fleet.proof.ts',
  'faults/{faults,leaks}.scaled.test.ts',
  'metrics/live.proof.ts',
  'policies/fleet.scaled.test.ts',
  'queue/bullmq-outage.scaled.test.ts',
  'queue/proofs/*.{proof,scaled.test}.ts',
  'queue/rabbitmq/*.proof.ts',
]

/**
 * What takes longest, in this order. It begins first: a long file that begins last has the other cores wait for it. In a clean clone
 * vitest knows no durations.
 */
const longest = [
  'adapters/adapters',
  'policies/fleet',
  'packages/next',
  'faults/faults',
  'examples/queue',
  'queue/brokers',
  'metrics/live',
  'stores/calendar',
  'admin/page/page',
  'evidence/fleets',
  'budgets/model',
  'packages/runtimes',
  'queue/rabbitmq/delivery',
  'admin/page/served',
  'packages/tarballs',
  'queue/proofs/queues',
  'examples/examples',
  'budgets/fleet',
  'examples/observability',
  'queue/kept-memory',
  'admin/fleet',
  'examples/site',
  'queue/bullmq-outage',
  'examples/recipes',
  'oracle/oracle',
  'packages/nest',
  'faults/leaks',
  'queue/proofs/processes',
  'metrics/alerts',
  'redis/cluster',
  'evidence/planted-faults',
  'testing/broker-kit',
  'testing/adapter-kit',
  'redis/control',
  'client/real-servers',
  'stores/differential',
  'stores/properties',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(`/test/${name}.`))
      return found === -1 ? longest.length : found
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

/** What a process does once (a warning, one pace for all clients), or in all, is tested in a process of its own. */
const apart = [
  'client/**/*.test.ts',
  'adapters/mistakes.test.ts',
  'core/{limiter,short-windows}.test.ts',
  // They count what a whole process calls, and its timers.
  'architecture/road.test.ts',
  'core/resilience/store-away.test.ts',
  // A replay moves the clock of its process.
  'cli/{docs,escapes,formats,simulate,suggest}.test.ts',
  'cli/report/simulate-html.test.ts',
  'cli/replay.scaled.test.ts',
  'evidence/fuzz.scaled.test.ts',
]

/** Tests wait for servers and processes half of their time, so that four files at once keep two cores busy. */
const workersAtOnce = 4

function project(
  name: string,
  scale: 'short' | 'proof',
  test: {
    include: string[]
    exclude?: string[]
    isolate?: boolean
    workers?: number
    order?: number
    atOnce?: number
  },
) {
  const { include, exclude = [], isolate = true, workers = workersAtOnce, order = 0, atOnce } = test
  return {
    extends: true as const,
    test: {
      name,
      env: { TEST_SCALE: scale },
      include,
      exclude: [...configDefaults.exclude, ...exclude],
      isolate,
      maxWorkers: workers,
      ...(atOnce && { maxConcurrency: atOnce }),
      sequence: { groupOrder: order },
    },
  }
}

/**
 * `npm test` runs the projects whose names begin with `tests`, where a file `*.scaled.test.ts` is short. Most files share a process:
 * to load the packages for each of them would take a third of the time. `npm run test:proofs` runs the others.
 */
const projects = [
  project('tests', 'short', {
    include: ['**/*.test.ts'],
    exclude: [...alone, ...apart],
    isolate: false,
  }),
  // Concurrent tests of clients wait for their servers, and do little else.
  project('tests-apart', 'short', { include: apart, atOnce: 12 }),
  project('tests-alone', 'short', { include: alone, order: 1 }),
  project('proofs', 'proof', {
    include: ['**/*.proof.ts', '**/*.scaled.test.ts'],
    exclude: aloneInProofs,
    order: 2,
  }),
  project('proofs-alone', 'proof', { include: aloneInProofs, workers: 3, order: 3 }),
]

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    globalSetup: ['support/global-setup.ts'],
    setupFiles: ['support/fresh-file.ts'],
    // Machines that run tests stand still for seconds now and then. Only what came too late is tried again, and the report
    // says so (`retry x1`); what is wrong fails at once.
    retry: {
      count: 2,
      condition: /did not answer within \d+ ms|^not within \d+ ms|timed out in \d+ms/,
    },
    testTimeout: 20_000,
    hookTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    projects,
  },
})
