import { defineConfig } from 'vitest/config'

// Tests run from the sources: the condition makes every @sluice import resolve to src, without a build.
const conditions = ['@sluice/source', 'node', 'import', 'module', 'default']

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
