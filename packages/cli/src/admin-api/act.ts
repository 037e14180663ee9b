import type { Static, TSchema } from '@sinclair/typebox'
import type { Command } from 'commander'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { askYes, canAsk } from '../terminal/prompt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { jsonText } from '../terminal/text.ts'
import { type AdminApi, type FleetOptions, fleetOptions } from './admin-api.ts'

export interface ActOptions extends FleetOptions {
  readonly reason: string
  readonly dryRun?: true
  readonly yes?: true
}

export function actOptions(command: Command): Command {
  return fleetOptions(command)
    .requiredOption('--reason <text>', 'one line for the audit trail')
    .option('--dry-run', 'show what would change, without changing anything')
    .option('--yes', 'do not ask for confirmation')
}

interface Action<Answer extends TSchema> {
  readonly path: string
  readonly body: object
  readonly answer: Answer
  readonly ifMatch?: string | undefined
  /** Lines for people: the changes before and after the action. */
  describe(answer: Static<Answer>): string
}

export async function act<Answer extends TSchema>(
  { terminal, api, options }: { terminal: Terminal; api: AdminApi; options: ActOptions },
  { path, body, answer, ifMatch, describe }: Action<Answer>,
): Promise<ExitCode> {
  const { stdout } = terminal
  const { reason, json = false, dryRun = false, yes = false } = options
  const ask = async (isDry: boolean) =>
    (await api.ask(path, { body: { ...body, reason, dryRun: isDry }, answer, ifMatch })).body
  const show = (found: Static<Answer>) => stdout.write(json ? jsonText(found) : describe(found))
  const preview = await ask(true)
  if (dryRun) {
    show(preview)
    if (!json) stdout.write('A dry run: nothing was changed.\n')
    return exitCodes.ok
  }
  if (!yes) {
    if (!canAsk(terminal)) {
      throw new CliError(
        'Nothing was changed: confirmation needs a terminal. Add --yes or --dry-run.',
      )
    }
    terminal.stderr.write(describe(preview))
    if (!(await askYes(terminal, 'Continue?'))) {
      throw new CliError('Nothing was changed.')
    }
  }
  const done = await ask(false)
  show(done)
  if (!json) stdout.write('Done.\n')
  return exitCodes.ok
}
