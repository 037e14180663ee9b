import type { Static, TSchema } from '@sinclair/typebox'
import { durationMs } from '@sluice/core'
import { type ActOptions, act, actOptions } from '../admin-api/act.ts'
import { AdminApi, type FleetOptions, fleetNotes, fleetOptions } from '../admin-api/admin-api.ts'
import { actionAnswer, changeAnswer, lookupAnswer } from '../admin-api/answers.ts'
import { describeChange } from '../admin-api/changes.ts'
import { actionText, describeLookup, keyNotes, keyOf } from '../admin-api/keys.ts'
import { listed } from '../replay/replay-options.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
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

export const reset: CliCommand = keyCommand({
  usage: 'reset <key...>',
  summary: 'Reset the counts of a key, and lift its block',
  examples: [
    ['sluice reset user ada --reason "ticket 4711"', 'asks before resetting'],
    ['sluice reset user ada --policy burst --reason "ticket 4711" --yes', 'one policy, unasked'],
  ],
  setUp: (command) =>
    command.option('--policy <name>', 'reset only under this policy; can be repeated', listed),
  ...{ path: 'keys/reset', answer: actionAnswer },
  bodyOf: ({ policy }: { readonly policy?: readonly string[] }) =>
    policy ? { policies: policy } : {},
  describe: actionText('would be reset', 'was reset', 'nothing to reset'),
})

export const raise: CliCommand = keyCommand({
  usage: 'raise <key...>',
  summary: 'Give a key a different limit for a time',
  notes:
    'The limit is an override that expires. It replaces an earlier one. To end it, use --for 5s.',
  examples: [
    ['sluice raise user ada --policy burst --limit 20 --for 1h --reason launch', 'asks first'],
  ],
  setUp: (command) =>
    command
      .requiredOption('--policy <name>', 'the policy')
      .requiredOption('--limit <n>', 'a whole number, or unlimited')
      .requiredOption('--for <duration>', `such as '10m' or '1d'`),
  ...{ path: 'keys/limit', answer: changeAnswer },
  bodyOf: ({ policy, limit, for: span }: Readonly<Record<'policy' | 'limit' | 'for', string>>) => ({
    policy,
    limit: /^\d+$/.test(limit) ? Number(limit) : limit,
    until: new Date(Date.now() + durationMs(span, '--for')).toISOString(),
  }),
  describe: describeChange,
})

export const block: CliCommand = keyCommand({
  usage: 'block <key...>',
  summary: 'Deny a key for a time',
  notes: 'It needs a penalty in the policies, such as penalty: { after: never, key: user }.',
  examples: [['sluice block user mallory --for 1h --reason scraping', 'asks, then blocks']],
  setUp: (command) => command.requiredOption('--for <duration>', `such as '10m' or '1d'`),
  ...{ path: 'keys/block', answer: actionAnswer },
  bodyOf: ({ for: span }: { readonly for: string }) => ({ for: span }),
  describe: actionText('would be blocked', 'is blocked', 'nothing to block'),
})

export const unblock: CliCommand = keyCommand({
  usage: 'unblock <key...>',
  summary: 'Lift the block of a key; its counts stay',
  examples: [['sluice unblock user mallory --reason "ticket 4712"', 'asks, then unblocks']],
  ...{ path: 'keys/unblock', answer: actionAnswer },
  describe: actionText('would be unblocked', 'is unblocked', 'nothing to unblock'),
})

interface KeyCommand<Options, Answer extends TSchema> extends Omit<CliCommand, 'run'> {
  readonly path: string
  readonly answer: Answer
  /** Fields of the request, in addition to the key. */
  bodyOf?(options: Options): object
  describe(answer: Static<Answer>, terminal: Terminal, typed: string): string
}

/** A command that changes something about one key. */
function keyCommand<Options, Answer extends TSchema>(
  given: KeyCommand<Options, Answer>,
): CliCommand {
  const { path, answer, bodyOf, describe, ...command } = given
  return {
    ...command,
    notes: [command.notes, notes].join('\n').trim(),
    setUp(made) {
      actOptions(made)
      command.setUp?.(made)
    },
    async run(terminal: Terminal, words: readonly string[], options: Options & ActOptions) {
      const api = new AdminApi(terminal, options)
      const body = { key: await keyOf(terminal, words), ...bodyOf?.(options) }
      return act(
        { terminal, api, options },
        { path, body, answer, describe: (found) => describe(found, terminal, words.join(' ')) },
      )
    },
  }
}
