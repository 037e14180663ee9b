import { expect, it } from 'vitest'
import { killRun } from '../proofs/kill-run.ts'

it('loses no job when RabbitMQ and workers are killed, and repeats only what was interrupted', async () => {
  const report = await killRun({ workers: 2, jobs: 400, kills: 4, brokerKills: 1, limit: 60 })
  expect(report).toMatchObject({ done: 400, unexplained: 0 })
  expect(report.mostInOneSecond).toBeLessThanOrEqual(report.bound)
  console.log(report)
}, 120_000)
