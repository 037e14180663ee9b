import { PassThrough } from 'node:stream'
import { runCli } from '../../packages/cli/src/commands/run-cli.ts'
import type { Terminal } from '../../packages/cli/src/terminal/terminal.ts'
import { until } from '../support/until.ts'
import { captured } from './run-sluice.ts'

interface Typing {
  readonly env?: Terminal['env']
  /** Called when the command asks something. @returns the keys that are pressed */
  answer(): string | Promise<string>
}

/** Runs `sluice` on a terminal at which somebody answers one question. */
export async function atTerminal(args: readonly string[], { env = {}, answer }: Typing) {
  const { written, ...outputs } = captured({ isTTY: true })
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const running = runCli(args, {
    ...{ stdin, ...outputs },
    env: { NO_COLOR: '1', ...env },
    signal: new AbortController().signal,
  })
  await until('it asks', () => /not shown\): |\[y\/N\] /.test(written.stderr))
  stdin.write(await answer())
  return { exitCode: await running, ...written }
}
