import type { Broker, Job, JobState } from '@sluice/queue'
import { until } from '../../support/until.ts'

const atOnce = 100

/** States of jobs, once none runs. A job's place is free a moment before it is `done`. */
export async function endStates(broker: Broker, jobs: readonly Pick<Job, 'id'>[]) {
  const states: (JobState | undefined)[] = []
  // A broker has a deadline for each look-up, so few wait at once.
  for (let from = 0; from < jobs.length; from += atOnce) {
    const some = jobs.slice(from, from + atOnce)
    await until('no job runs', async () => {
      const found = await Promise.all(some.map(async ({ id }) => (await broker.status(id))?.state))
      states.splice(from, atOnce, ...found)
      return !found.includes('running')
    })
  }
  return states
}
