import { runCli } from './commands/run-cli.ts'
import { processTerminal } from './terminal/process-terminal.ts'

// The command `sluice`.
process.exitCode = await runCli(process.argv.slice(2), processTerminal())
