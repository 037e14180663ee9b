import { killRun } from './kill-run.ts'
const r = await killRun({ workers: 3, jobs: 6_000, kills: 55, brokerKills: 3, limit: 100 })
console.log(JSON.stringify(r))
