import { policyFileProblems } from '@sluice/policies'
import { type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { textOf } from '../terminal/files.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

export const check: CliCommand = {
  usage: 'check <files...>',
  summary: 'Check policy files for mistakes',
  notes: 'Each mistake is one line: file:line:column: message.',
  examples: [
    ['sluice check sluice.yaml', 'one file'],
    ['sluice check limits/*.yaml', 'several files; exits with 1 if one is wrong'],
  ],
  run: checkFiles,
}

async function checkFiles(terminal: Terminal, files: readonly string[]): Promise<ExitCode> {
  const { stdout } = terminal
  const style = styleOf(stdout, terminal)
  let found = 0
  for (const file of files) {
    const problems = policyFileProblems(await textOf(file))
    for (const { line, column, message } of problems) {
      stdout.write(`${style('bold', `${file}:${line}:${column}:`)} ${message}\n`)
    }
    if (problems.length === 0) stdout.write(`${file}: ${style('green', 'no errors')}\n`)
    found += problems.length
  }
  return found === 0 ? exitCodes.ok : exitCodes.found
}
