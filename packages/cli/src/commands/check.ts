import { readFile } from 'node:fs/promises'
import { errorText } from '@sluice/core'
import { policyFileProblems } from '@sluice/policies'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

export const check: CliCommand = {
  usage: 'check <files...>',
  summary: 'Look for mistakes in policy files',
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
    const problems = policyFileProblems(await readText(file))
    for (const { line, column, message } of problems) {
      stdout.write(`${style('bold', `${file}:${line}:${column}:`)} ${message}\n`)
    }
    if (problems.length === 0) stdout.write(`${file}: ${style('green', 'no mistakes')}\n`)
    found += problems.length
  }
  return found === 0 ? exitCodes.ok : exitCodes.found
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new CliError(`${file} cannot be read: ${errorText(cause)}`, exitCodes.usage, { cause })
  }
}
