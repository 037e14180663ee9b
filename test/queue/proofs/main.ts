import { killRun } from './kill-run.ts'

/** The long form of what `proofs.test.ts` tries for a few seconds. */
const plan = { workers: 3, jobs: 2_000, kills: 20, limit: 100 }
console.log('a worker killed each second:', plan)
const report = await killRun(plan)
console.log(report)
const { done, unexplained, mostInOneSecond, bound } = report
const isKept = done === plan.jobs && unexplained === 0 && mostInOneSecond <= bound
console.log(isKept ? 'kept' : 'NOT KEPT')
if (!isKept) process.exitCode = 1
