/** What has to be stopped when the benchmark ends, in whichever way. */
export class Cleanups {
  readonly #tasks: (() => unknown)[] = []

  add(task: () => unknown): void {
    this.#tasks.push(task)
  }

  /** Runs all tasks, the latest first; one that fails does not keep the others from running. */
  async run(): Promise<void> {
    for (let task = this.#tasks.pop(); task; task = this.#tasks.pop()) {
      try {
        await task()
      } catch (error) {
        process.stderr.write(`While cleaning up: ${String(error)}\n`)
      }
    }
  }
}
