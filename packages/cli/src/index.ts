export { type ExitCode, exitCodes } from './exit-codes.ts'
export { runCli } from './run-cli.ts'
export type { Output, Terminal } from './terminal/terminal.ts'
