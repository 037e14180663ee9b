import type { ExitCode } from '../exit-codes.ts'
import { type ActOptions, act, actOptions } from '../fleet/act.ts'
import { AdminApi, fleetNotes } from '../fleet/admin-api.ts'
import { actionAnswer } from '../fleet/answers.ts'
import { describeAction, keyNotes, keyOf } from '../fleet/keys.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

interface BlockOptions extends ActOptions {
  readonly for: string
}

export const block: CliCommand = {
  usage: 'block <key...>',
  summary: 'Deny a key for a time',
  notes: `It needs a penalty in the policies, such as penalty: { after: never, key: user }. sluice reset lifts the block.
${keyNotes}\n${fleetNotes}\nIt needs the role keys.`,
  examples: [
    ['sluice block user mallory --for 1h --reason scraping', 'asks, and blocks for an hour'],
  ],
  setUp(command) {
    actOptions(command).requiredOption('--for <duration>', `such as '10m' or '1d'`)
  },
  run: runBlock,
}

async function runBlock(
  terminal: Terminal,
  words: readonly string[],
  options: BlockOptions,
): Promise<ExitCode> {
  const api = new AdminApi(terminal, options)
  const key = await keyOf(terminal, words)
  return act(
    { terminal, api, options },
    {
      path: 'keys/block',
      body: { key, duration: options.for },
      answer: actionAnswer,
      describe: (answer) =>
        describeAction(
          answer,
          { would: 'would be blocked', did: 'is blocked', nothing: 'nothing to block' },
          styleOf(terminal.stdout, terminal),
        ),
    },
  )
}
