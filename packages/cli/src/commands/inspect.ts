import { type ExitCode, exitCodes } from '../exit-codes.ts'
import { AdminApi, type FleetOptions, fleetNotes, fleetOptions } from '../fleet/admin-api.ts'
import { lookupAnswer } from '../fleet/answers.ts'
import { describeLookup, keyNotes, keyOf } from '../fleet/keys.ts'
import { jsonText } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

export const inspect: CliCommand = {
  usage: 'inspect <key...>',
  summary: 'Show the state of a key under each policy',
  notes: `${keyNotes}\n${fleetNotes}\nIt needs the role keys.`,
  examples: [
    ['sluice inspect user ada', 'a key that is typed'],
    ['sluice inspect q83vEjRWeJCrze8SNFZ4kA', 'a digest of sluice top, or of the denial log'],
    ['sluice inspect - < key.txt', 'a key that must not stand in the history of the shell'],
  ],
  setUp: fleetOptions,
  run: runInspect,
}

async function runInspect(
  terminal: Terminal,
  words: readonly string[],
  options: FleetOptions,
): Promise<ExitCode> {
  const api = new AdminApi(terminal, options)
  const key = await keyOf(terminal, words)
  const { body } = await api.ask('keys/lookup', { body: { key }, answer: lookupAnswer })
  terminal.stdout.write(options.json ? jsonText(body) : describeLookup(body, terminal))
  return exitCodes.ok
}
