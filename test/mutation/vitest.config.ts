import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import base from '../vitest.config.ts'

const { projects: _, globalSetup: __, sequence: ___, ...test } = base.test ?? {}

/** The suites of memory and of one Redis, in one project, since the runner of the mutations knows no projects. */
export default mergeConfig({ ...base, test } satisfies ViteUserConfig, {
  test: {
    isolate: false,
    // A test that waits for what a mistake has broken fails once. Three times would take a minute.
    retry: 0,
    env: { TEST_SCALE: 'short', STORES: '^memory|^Map|ioredis' },
    include: [
      'async/*.test.ts',
      'budgets/{model.scaled,reserve}.test.ts',
      'core/!(releases|errors|turn-queue|algorithm-pictures).test.ts',
      'core/resilience/*.test.ts',
      'prefetch/*.test.ts',
      'redis/{garbage.scaled,keys,script,shards}.test.ts',
      'stores/*.test.ts',
    ],
  },
})
