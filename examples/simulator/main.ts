import { mkdirSync, writeFileSync } from 'node:fs'
import { runCli } from '@sluice/cli'
import { generateLog } from './generate-log.ts'

// Writes a log and suggests limits for it, then tries them on the same log: as with the command `sluice` in a shell.

mkdirSync('logs', { recursive: true })
writeFileSync('logs/access.log', generateLog())

const { stdin, stdout, stderr, env } = process
const terminal = { stdin, stdout, stderr, env, signal: new AbortController().signal }

for (const line of [
  'suggest logs/access.log --output logs/sluice.yaml --force',
  'check logs/sluice.yaml',
  'simulate logs/access.log --policies logs/sluice.yaml',
]) {
  console.log(`\n$ sluice ${line}\n`)
  process.exitCode = await runCli(line.split(' '), terminal)
}
