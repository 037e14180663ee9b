import { configDefaults, defineConfig } from 'vitest/config'

// Tests run from the sources: the condition makes every @sluice import resolve to src, without a build.
// Only what is not there by itself: vitest hands them to Node too, where `import` would give ESM builds to every require().
const conditions = ['@sluice/source', 'node']

/** What stops servers and processes, or measures time: one file after the other, and beside nothing else. */
const alone = [
  'faults/{faults,leaks}.scaled.test.ts',
  'queue/bullmq-outage.scaled.test.ts',
  'queue/proofs/*.scaled.test.ts',
]

/** `npm test` runs the project `tests`, and then `tests-alone`. A file `*.scaled.test.ts` is short there. */
const tests = { name: 'tests', scale: 'short', include: ['**/*.test.ts'], alone }

/** `npm run test:proofs` runs the proofs, and the files `*.scaled.test.ts` at full size. */
const proofs = {
  name: 'proofs',
  scale: 'proof',
  include: ['**/*.proof.ts', '**/*.scaled.test.ts'],
  alone: [...alone, 'queue/proofs/*.proof.ts'],
}

function projectsOf({ name, scale, include, alone }: typeof tests) {
  const env = { TEST_SCALE: scale }
  const exclude = [...configDefaults.exclude, ...alone]
  return [
    {
      extends: true as const,
      test: { name, env, include, exclude, maxWorkers: 2, sequence: { groupOrder: 0 } },
    },
    {
      extends: true as const,
      test: {
        name: `${name}-alone`,
        env,
        include: alone,
        maxWorkers: 1,
        sequence: { groupOrder: 1 },
      },
    },
  ]
}

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    globalSetup: ['support/global-setup.ts'],
    // Machines that run tests stand still for seconds now and then. Only what came too late is tried again, and the report
    // says so (`retry x1`); what is wrong fails at once.
    retry: {
      count: 2,
      condition: /did not answer within \d+ ms|^not within \d+ ms|timed out in \d+ms/,
    },
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [...projectsOf(tests), ...projectsOf(proofs)],
  },
})
