import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { generateLog } from './generate-log.ts'

// Writes a log, suggests limits for it, and tests them on the same log, like `npx sluice` in a shell.

mkdirSync('logs', { recursive: true })
writeFileSync('logs/access.log', generateLog())

// The command `sluice` is next to the package's entry.
const entry = import.meta.resolve('@sluice/cli')
const command = fileURLToPath(entry.replace(/index(\.\w+)$/, 'main$1'))

for (const line of [
  'suggest logs/access.log --output logs/sluice.yaml --force',
  'check logs/sluice.yaml',
  'simulate logs/access.log --policies logs/sluice.yaml',
]) {
  console.log(`\n$ sluice ${line}\n`)
  const words = [...process.execArgv, command, ...line.split(' ')]
  process.exitCode = spawnSync(process.execPath, words, { stdio: 'inherit' }).status ?? 1
}
