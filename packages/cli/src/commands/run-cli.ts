import { createRequire } from 'node:module'
import { errorText, isSluiceError } from '@sluice/core'
import { Command, CommanderError } from 'commander'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { apply } from './apply.ts'
import { check } from './check.ts'
import type { CliCommand, Example } from './command.ts'
import { diff } from './diff.ts'
import { doctor } from './doctor.ts'
import { block, inspect, raise, reset, unblock } from './keys.ts'
import { off, on, shadow } from './kill-switch.ts'
import { simulate } from './simulate.ts'
import { suggest } from './suggest.ts'
import { top } from './top.ts'

const commands: readonly CliCommand[] = [
  suggest,
  simulate,
  diff,
  check,
  top,
  inspect,
  reset,
  raise,
  block,
  unblock,
  apply,
  off,
  shadow,
  on,
  doctor,
]

const { version }: { readonly version: string } = createRequire(import.meta.url)(
  '@sluice/cli/package.json',
)
const description = 'Test rate limits on access logs, and manage them in a running fleet.'

const legend = `
Exit codes:
  0  finished, and found no problems
  1  found a problem: a mistake in a file, or an exceeded bound
  2  did not start: an unknown option, or a missing file
  3  did not finish: a server did not answer (for doctor, this is a problem: 1)
`

/**
 * Runs a command line.
 * @param args the words after `sluice`
 * @returns the exit code, once the command has ended
 */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const { stdout, stderr } = terminal
  let exitCode: ExitCode = exitCodes.ok
  const program = new Command('sluice')
    .description(description)
    .version(version, '--version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? 100,
      getErrHelpWidth: () => stderr.columns ?? 100,
    })
    .showHelpAfterError('(add --help for options and examples)')
    .addHelpText('after', legend)
  for (const command of commands) {
    addCommand(program, command).action(async (...given: unknown[]) => {
      exitCode = await Reflect.apply(command.run, undefined, [terminal, ...given])
    })
  }
  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    stderr.write(`${styleOf(stderr, terminal)('red', 'error:')} ${messageOf(error)}\n`)
    if (error instanceof CliError) return error.exitCode
    return isSluiceError(error) ? exitCodes.usage : exitCodes.failed
  }
}

function addCommand(program: Command, command: CliCommand): Command {
  const { usage, summary, notes, examples, setUp } = command
  const made = program.command(usage).summary(summary).description(`${summary}.`)
  setUp?.(made)
  return made.addHelpText('after', [notes && `\n${notes}\n`, listed(examples)].join(''))
}

function listed(examples: readonly Example[]): string {
  const lines = examples.map(([line, purpose]) => `  ${line}\n      ${purpose}\n`)
  return `\nExamples:\n${lines.join('')}`
}

/** The message of a mistake that the user can fix, or the stack of an internal error. */
function messageOf(error: unknown): string {
  const isExpected = error instanceof CliError || isSluiceError(error)
  return !isExpected && error instanceof Error && error.stack ? error.stack : errorText(error)
}
