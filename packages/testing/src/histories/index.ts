export {
  checkHistory,
  type Finding,
  type FindingKind,
  type HistoryLaw,
  type HistoryReport,
} from './check-history.ts'
export { type HistoryDecision, type HistoryLine, readHistory } from './history.ts'
