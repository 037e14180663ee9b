export { type ExitCode, exitCodes } from './exit-codes.ts'
export { htmlReport } from './report/html-report.ts'
export type {
  BusyClient,
  DeniedClient,
  HourReport,
  LogReport,
  PolicyReport,
  RatesReport,
  RouteReport,
  SimulationReport,
  Totals,
  UnreadableLine,
} from './report/simulation-report.ts'
export { runCli } from './run-cli.ts'
export type { Output, Terminal } from './terminal/terminal.ts'
