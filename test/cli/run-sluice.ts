import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { runCli } from '../../packages/cli/src/commands/run-cli.ts'
import type { Terminal } from '../../packages/cli/src/terminal/terminal.ts'

interface RunOptions {
  readonly stdin?: string | Buffer
  readonly env?: Terminal['env']
  readonly isTTY?: boolean
  /** The width of the terminal. @default 100 */
  readonly columns?: number
  readonly signal?: AbortSignal
}

/** Runs `sluice` in this process, as a shell would with these words. */
export async function runSluice(args: readonly string[], options: RunOptions = {}) {
  const { stdin = '', env = {}, isTTY = false, columns = 100 } = options
  const { signal = new AbortController().signal } = options
  const written = { stdout: '', stderr: '' }
  const outputOf = (name: 'stdout' | 'stderr') => ({
    isTTY,
    columns,
    write: (text: string) => {
      written[name] += text
    },
  })
  const exitCode = await runCli(args, {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: outputOf('stdout'),
    stderr: outputOf('stderr'),
    env,
    signal,
  })
  return { exitCode, ...written }
}

/** Runs a command that succeeds without a warning. @returns what it prints with --json */
export async function reported<Report>(
  args: readonly string[],
  options?: RunOptions,
): Promise<Report> {
  const { exitCode, stdout, stderr } = await runSluice([...args, '--json'], options)
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
