import type { Broker, Job, JobState } from '@sluice/queue'
import { until } from '../../support/until.ts'

/** States of jobs, once none runs. A job's place is free a moment before it is `done`. */
export async function endStates(
  broker: Broker,
  jobs: readonly Pick<Job, 'id'>[],
): Promise<readonly (JobState | undefined)[]> {
  let states: readonly (JobState | undefined)[] = []
  await until('no job runs', async () => {
    states = await Promise.all(jobs.map(async ({ id }) => (await broker.status(id))?.state))
    return !states.includes('running')
  })
  return states
}
