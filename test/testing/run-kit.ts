/** A test of a kit that failed. */
export interface Failure {
  readonly test: string
  readonly message: string
}

interface Runner {
  describe(name: string, body: () => void): void
  it(name: string, body: () => Promise<void>): void
}

/** Runs the tests that a kit describes, without a test runner, and resolves to those that failed. */
export async function runKit(
  kit: (runner: Runner) => void,
  only: (test: string) => boolean = () => true,
): Promise<{ readonly tests: number; readonly failures: readonly Failure[] }> {
  const tests: { test: string; body: () => Promise<void> }[] = []
  const within: string[] = []
  kit({
    describe(name, body) {
      within.push(name)
      body()
      within.pop()
    },
    it: (name, body) => tests.push({ test: [...within, name].join(' › '), body }),
  })
  const failures: Failure[] = []
  const chosen = tests.filter(({ test }) => only(test))
  for (const { test, body } of chosen) {
    await body().catch((error: Error) => failures.push({ test, message: error.message }))
  }
  return { tests: chosen.length, failures }
}
