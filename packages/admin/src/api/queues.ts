import type { Static } from '@sinclair/typebox'
import type { Broker } from '@sluice/queue'
import { ApiError, fromStore } from '../stores/api-error.ts'
import type { Answering, Call } from './context.ts'
import { seesIdentities } from './policy-lists.ts'
import type * as schemas from './schemas/fleet.ts'

export const queues: Answering = async ({ admin }) => {
  const depths = await admin.reads.depths()
  return { queues: depths.map(({ name, depth }) => ({ name, isAway: !depth, ...depth })) }
}

export const deadLetters: Answering<Static<typeof schemas.deadQuery>> = async (call) => {
  const broker = brokerOf(call)
  const { offset = 0, limit = 50 } = call.query
  const jobs = await call.admin.reads.deadLetters(broker, { offset, limit })
  return {
    ...{ queue: broker.name, offset },
    jobs: jobs.map(({ id, identity, enqueuedAt, attempts, error }) => {
      // An error message may contain an identity.
      const shown = seesIdentities(call.who) ? error : undefined
      return { id, identity, enqueuedAt, attempts, error: shown }
    }),
  }
}

type DeadCall = Call<unknown, Static<typeof schemas.deadRequest>>

export const retryDead: Answering<unknown, DeadCall['body']> = (call) =>
  acted(call, 'queues.retry', (broker, id) => broker.retry(id))

export const deleteDead: Answering<unknown, DeadCall['body']> = (call) =>
  acted(call, 'queues.delete', (broker, id) => broker.forget(id))

async function acted(
  call: DeadCall,
  action: string,
  act: (broker: Broker, id: string) => Promise<boolean>,
): Promise<object> {
  const { admin, who, body } = call
  const { reason, dryRun = false } = body
  const broker = brokerOf(call)
  const ids = [...new Set(body.ids)]
  const isDead = async (id: string): Promise<boolean> =>
    (await broker.status(id))?.state === 'failed'
  const run = async () => {
    const done: string[] = []
    for (const id of ids) {
      if (await fromStore(() => (dryRun ? isDead(id) : act(broker, id)))) done.push(id)
    }
    const missing = ids.filter((id) => !done.includes(id))
    return { queue: broker.name, done, missing, dryRun }
  }
  if (dryRun) return run()
  const target = { queue: broker.name }
  const result = await admin.audit.recorded({ actor: who.actor, action, reason, target }, run)
  admin.reads.depths.forget()
  admin.reads.deadLetters.forget()
  admin.reads.audit.forget()
  return result
}

function brokerOf({ admin, path }: Pick<Call, 'admin' | 'path'>): Broker {
  const found = admin.queues.find(({ broker }) => broker.name === path.queue)
  if (found) return found.broker
  throw new ApiError(404, 'There is no such queue.')
}
