import { configDefaults, defineConfig } from 'vitest/config'

// Tests run from the sources: the condition makes every @sluice import resolve to src, without a build.
// Only what is not there by itself: vitest hands them to Node too, where `import` would give ESM builds to every require().
const conditions = ['@sluice/source', 'node']

/** What stops, kills and restarts servers and processes, and looks how long things take: one file after the other, and beside nothing else. */
const alone = [
  'faults/faults.test.ts',
  'faults/leaks.test.ts',
  'queue/bullmq-outage.test.ts',
  'queue/proofs/*.test.ts',
]

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    globalSetup: ['support/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...alone],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
