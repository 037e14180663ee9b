import { writeFile } from 'node:fs/promises'
import { addLogOptions, logNotes } from '../input/log-options.ts'
import { type SuggestOptions, suggestFrom } from '../suggest/suggest-log.ts'
import { policyFileText, suggestionText } from '../suggest/suggestion-text.ts'
import { type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { checkOutputs, withFile } from '../terminal/files.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { jsonText, wrapped } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

interface Options extends SuggestOptions {
  readonly output?: string
  readonly force?: boolean
  readonly json?: boolean
}

export const suggest: CliCommand = {
  usage: 'suggest [logs...]',
  summary: 'Suggest limits that fit the clients in access logs, and write a policy file',
  notes: logNotes,
  examples: [
    ['sluice suggest access.log -o sluice.yaml', 'limits for addresses, as a policy file'],
    ['sluice suggest access.log.*.gz --touch 1%', 'limits that may affect one client in a hundred'],
    [
      'sluice suggest app.log --by tenant=header:x-tenant --json',
      'limits for each tenant, as JSON',
    ],
  ],
  setUp(command) {
    addLogOptions(command)
      .option('--by <key>', 'identity: ip, NAME=header:x-tenant or NAME=field:user.id', 'ip')
      .option('--touch <share>', 'share of identities that the limits may affect', '0.1%')
      .option('-o, --output <file>', 'write a policy file')
      .option('--force', 'overwrite an existing policy file')
      .option('--json', 'print the result as JSON')
  },
  run: suggestLimits,
}

async function suggestLimits(
  terminal: Terminal,
  files: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { stdout } = terminal
  const { output, force } = options
  checkOutputs({ '--output': output }, files, options)
  const suggestion = await suggestFrom(terminal, files, options)
  const style = styleOf(stdout, terminal)
  stdout.write(
    options.json ? jsonText(suggestion) : wrapped(suggestionText(suggestion, style), stdout),
  )
  if (output === undefined) return exitCodes.ok
  const flag = force ? 'w' : 'wx'
  await withFile(output, 'written', () => writeFile(output, policyFileText(suggestion), { flag }))
  const isFile = files.length > 0 && !files.includes('-')
  const next = isFile ? ['simulate', ...files, '-p', output] : ['check', output]
  const quoted = next.map((word) =>
    /[^\w./:@+-]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : word,
  )
  if (!options.json) stdout.write(`\nwrote ${output}; next: sluice ${quoted.join(' ')}\n`)
  return exitCodes.ok
}
