import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import base from '../vitest.config.ts'

const { projects: _, globalSetup: __, sequence: ___, ...test } = base.test ?? {}

/** The suites of memory and of one Redis, in one project, since the runner of the mutations knows no projects. */
export default mergeConfig({ ...base, test } satisfies ViteUserConfig, {
  test: {
    isolate: false,
    env: { TEST_SCALE: 'short', STORES: '^memory|^Map|ioredis' },
    include: [
      'async/*.test.ts',
      'budgets/reserve.test.ts',
      'core/!(releases|errors|turn-queue|algorithm-pictures).test.ts',
      'core/resilience/*.test.ts',
      'prefetch/!(model).test.ts',
      'redis/keys.test.ts',
      'stores/{calendar,conformance,denials,differential,grants,penalties,properties,refunds}*.test.ts',
    ],
  },
})
