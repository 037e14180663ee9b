import type { ExitCode } from '../exit-codes.ts'
import { type ActOptions, act, actOptions } from '../fleet/act.ts'
import { AdminApi, fleetNotes } from '../fleet/admin-api.ts'
import { actionAnswer } from '../fleet/answers.ts'
import { describeAction, keyNotes, keyOf } from '../fleet/keys.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

interface ResetOptions extends ActOptions {
  readonly policy?: readonly string[]
}

export const reset: CliCommand = {
  usage: 'reset <key...>',
  summary: 'Forget what a key has taken, and lift its block',
  notes: `${keyNotes}\n${fleetNotes}\nIt needs the role keys.`,
  examples: [
    ['sluice reset user ada --reason "ticket 4711"', 'shows what there is, and asks'],
    ['sluice reset user ada --policy burst --reason "ticket 4711" --yes', 'one policy, unasked'],
  ],
  setUp(command) {
    actOptions(command).option(
      '--policy <name>',
      'reset under this policy alone; may be given several times',
      (name: string, names: readonly string[] = []) => [...names, name],
    )
  },
  run: runReset,
}

async function runReset(
  terminal: Terminal,
  words: readonly string[],
  options: ResetOptions,
): Promise<ExitCode> {
  const api = new AdminApi(terminal, options)
  const key = await keyOf(terminal, words)
  const { policy: policies } = options
  return act(
    { terminal, api, options },
    {
      path: 'keys/reset',
      body: { key, ...(policies && { policies }) },
      answer: actionAnswer,
      describe: (answer) =>
        describeAction(
          answer,
          { would: 'would be reset', did: 'was reset', nothing: 'nothing to reset' },
          styleOf(terminal.stdout, terminal),
        ),
    },
  )
}
