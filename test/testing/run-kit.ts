interface Runner {
  describe(name: string, body: () => void): void
  it(name: string, body: () => Promise<void>): void
}

/**
 * Runs the tests that a kit describes, one after the other and without a test runner, until the message of a failure is `enough`.
 * @returns the number of tests, and the messages of those that failed
 */
export async function runKit(
  kit: (runner: Runner) => void,
  enough?: RegExp,
): Promise<{ readonly tests: number; readonly messages: readonly string[] }> {
  const tests: (() => Promise<void>)[] = []
  kit({ describe: (_name, body) => body(), it: (_name, body) => tests.push(body) })
  const messages: string[] = []
  for (const test of tests) {
    await test().catch(({ message }: Error) => messages.push(message))
    if (enough && messages.some((message) => enough.test(message))) break
  }
  return { tests: tests.length, messages }
}
