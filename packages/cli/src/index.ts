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
export { type ExitCode, exitCodes } from './terminal/exit-codes.ts'
