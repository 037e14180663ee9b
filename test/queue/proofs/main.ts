import { killRun } from './kill-run.ts'
import { outboundRun } from './outbound-run.ts'

/** The long forms of what `queues.proof.ts` tries for a few seconds. */
const kills = { workers: 3, jobs: 2_000, kills: 20, limit: 100 }
console.log('a worker killed each second:', kills)
const killed = await killRun(kills)
console.log(killed)
const isInRate = killed.mostInOneSecond <= killed.bound
report(killed.done === kills.jobs && killed.unexplained === 0 && isInRate)

const brokerKills = { workers: 3, jobs: 10_000, kills: 95, brokerKills: 5, limit: 100 }
console.log('the same with RabbitMQ, which is killed too:', brokerKills)
const survived = await killRun(brokerKills)
console.log(survived)
report(survived.done === brokerKills.jobs && survived.unexplained === 0)

const outbound = { processes: 4, seconds: 30, limit: 20, windowMs: 1_000, latencyMs: 40 }
console.log('a third party that is called from several processes:', outbound)
const called = await outboundRun(outbound)
console.log(called)
report(called.violations === 0 && called.used >= 0.85)

const restarts = { ...outbound, latencyMs: 600, outages: { count: 4, awayMs: 1_000 } }
console.log('the same, slower, with a Redis that is killed and comes back empty:', restarts)
const restarted = await outboundRun(restarts)
console.log(restarted)
report(restarted.violations === 0)

function report(isKept: boolean): void {
  console.log(isKept ? 'kept' : 'NOT KEPT')
  if (!isKept) process.exitCode = 1
}
