import { type ActOptions, act, actOptions } from '../admin-api/act.ts'
import { AdminApi, type FleetOptions, fleetNotes, fleetOptions } from '../admin-api/admin-api.ts'
import { actionAnswer, lookupAnswer } from '../admin-api/answers.ts'
import { describeAction, describeLookup, keyNotes, keyOf } from '../admin-api/keys.ts'
import { listed } from '../replay/replay-options.ts'
import { type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { jsonText } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

const notes = `${keyNotes}\n${fleetNotes}\nRequires the role keys.`

export const inspect: CliCommand = {
  usage: 'inspect <key...>',
  summary: 'Show the state of a key under each policy',
  notes,
  examples: [
    ['sluice inspect user ada', 'a key by name and value'],
    ['sluice inspect q83vEjRWeJCrze8SNFZ4kA', 'a digest from sluice top or the denial log'],
    ['sluice inspect - < key.txt', 'a key that must not appear in the shell history'],
  ],
  setUp: fleetOptions,
  async run(terminal: Terminal, words: readonly string[], options: FleetOptions) {
    const api = new AdminApi(terminal, options)
    const key = await keyOf(terminal, words)
    const { body } = await api.ask('keys/lookup', { body: { key }, answer: lookupAnswer })
    terminal.stdout.write(options.json ? jsonText(body) : describeLookup(body, terminal))
    return exitCodes.ok
  },
}

export const reset: CliCommand = {
  usage: 'reset <key...>',
  summary: 'Reset the counts of a key, and lift its block',
  notes,
  examples: [
    ['sluice reset user ada --reason "ticket 4711"', 'asks before resetting'],
    [
      'sluice reset user ada --policy burst --reason "ticket 4711" --yes',
      'one policy, without confirmation',
    ],
  ],
  setUp(command) {
    actOptions(command).option(
      '--policy <name>',
      'reset only under this policy; can be repeated',
      listed,
    )
  },
  run: (
    terminal: Terminal,
    words: readonly string[],
    options: ActOptions & { readonly policy?: readonly string[] },
  ) =>
    actOn(terminal, words, {
      ...{ options, path: 'keys/reset', body: options.policy && { policies: options.policy } },
      texts: { would: 'would be reset', did: 'was reset', nothing: 'nothing to reset' },
    }),
}

export const block: CliCommand = {
  usage: 'block <key...>',
  summary: 'Deny a key for a time',
  notes: `It needs a penalty in the policies, such as penalty: { after: never, key: user }. sluice reset lifts the block.
${notes}`,
  examples: [
    ['sluice block user mallory --for 1h --reason scraping', 'asks, then blocks for an hour'],
  ],
  setUp(command) {
    actOptions(command).requiredOption('--for <duration>', `such as '10m' or '1d'`)
  },
  run: (
    terminal: Terminal,
    words: readonly string[],
    options: ActOptions & { readonly for: string },
  ) =>
    actOn(terminal, words, {
      ...{ options, path: 'keys/block', body: { for: options.for } },
      texts: { would: 'would be blocked', did: 'is blocked', nothing: 'nothing to block' },
    }),
}

interface KeyAct {
  readonly options: ActOptions
  readonly path: string
  readonly body: object | undefined
  readonly texts: Parameters<typeof describeAction>[1]
}

async function actOn(
  terminal: Terminal,
  words: readonly string[],
  { options, path, body, texts }: KeyAct,
): Promise<ExitCode> {
  const api = new AdminApi(terminal, options)
  const key = await keyOf(terminal, words)
  const style = styleOf(terminal.stdout, terminal)
  return act(
    { terminal, api, options },
    {
      ...{ path, body: { key, ...body }, answer: actionAnswer },
      describe: (answer) => describeAction(answer, texts, style),
    },
  )
}
