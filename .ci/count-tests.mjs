// Prints `<passed> <failed>` for a JSON report of vitest and the exit status of the run that wrote it.
import { existsSync, readFileSync } from 'node:fs'

const [reportPath = '', status = '1'] = process.argv.slice(2)
const report = existsSync(reportPath) ? JSON.parse(readFileSync(reportPath, 'utf8')) : {}
const { numPassedTests: passed = 0, numFailedTests: failedTests = 0 } = report
const failed = Math.max(failedTests, status !== '0' || passed === 0 ? 1 : 0)
console.log(`${passed} ${failed}`)
