import { defineConfig } from 'vitest/config'

// Tests run from the sources: the condition makes every @sluice import resolve to src, without a build.
// Only what is not there by itself: vitest hands them to Node too, where `import` would give ESM builds to every require().
const conditions = ['@sluice/source', 'node']

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['**/*.test.ts'],
    globalSetup: ['support/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
