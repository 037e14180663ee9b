import { PassThrough, Readable } from 'node:stream'
import { expect } from 'vitest'
import { runCli } from '../../packages/cli/src/commands/run-cli.ts'
import type { Terminal } from '../../packages/cli/src/terminal/terminal.ts'
import { until } from '../support/until.ts'

interface RunOptions {
  readonly stdin?: string | Buffer
  readonly env?: Terminal['env']
  readonly isTTY?: boolean
  /** The width of the terminal. @default 100 */
  readonly columns?: number
}

/** Keeps what is written to the outputs of a terminal. */
export function captured(options: { isTTY: boolean; columns?: number; rows?: number }) {
  const written = { stdout: '', stderr: '' }
  const outputOf = (name: 'stdout' | 'stderr') => ({
    ...options,
    write: (text: string) => {
      written[name] += text
    },
  })
  return { written, stdout: outputOf('stdout'), stderr: outputOf('stderr') }
}

/** Runs `sluice` in this process, as a shell would with these words. */
export async function runSluice(args: readonly string[], options: RunOptions = {}) {
  const { stdin = '', env = {}, isTTY = false, columns = 100 } = options
  const { written, ...outputs } = captured({ isTTY, columns })
  const { signal } = new AbortController()
  const terminal = { stdin: Readable.from([Buffer.from(stdin)]), ...outputs, env, signal }
  return { exitCode: await runCli(args, terminal), ...written }
}

interface Typing {
  readonly env?: Terminal['env']
  /** Called when the command asks something. @returns the keys that are pressed */
  answer(): string | Promise<string>
}

/** Runs `sluice` on a terminal at which somebody answers one question. */
export async function atTerminal(args: readonly string[], { env = {}, answer }: Typing) {
  const { written, ...outputs } = captured({ isTTY: true })
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const { signal } = new AbortController()
  const running = runCli(args, { stdin, ...outputs, env: { NO_COLOR: '1', ...env }, signal })
  await until('it asks', () => /hidden\): |\[y\/N\] /.test(written.stderr))
  stdin.write(await answer())
  return { exitCode: await running, ...written }
}

/** Runs a command that succeeds without a warning. @returns what it prints with --json */
export async function reported<T>(args: readonly string[], options?: RunOptions): Promise<T> {
  const { exitCode, stdout, stderr } = await runSluice([...args, '--json'], options)
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
