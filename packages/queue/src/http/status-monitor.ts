import {
  checkedElsewhere,
  createLimiter,
  type Duration,
  knownFields,
  type Limiter,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  type Store,
  withoutRegions,
} from '@sluice/core'
import type { Handler, HandlerRequest, HandlerResponse } from '@sluice/http'
import type { Cancelled } from '../broker.ts'
import { isOpen } from '../job.ts'
import type { Queue } from '../queue.ts'
import {
  endedAnswer,
  type JobAnswer,
  jobAnswer,
  json,
  orUnavailable,
  problem,
  quotaProblem,
} from './job-responses.ts'
import { pollPolicy, queueOf } from './options.ts'

/** Options of `statusMonitor`. */
export interface StatusMonitorOptions<Native = unknown> extends OptionsOf<MonitorTable<Native>> {}

class MonitorTable<Native> {
  /** Queue whose jobs the monitor shows. It needs an `identity`. */
  queue: RequiredOption<Queue<Native>> = queueOf
  /**
   * Rate at which one identity may poll, in addition to all other limits.
   * @default { limit: 20, window: '1s' }
   */
  poll?: Option<{ limit: number; window: Duration }> = (poll, option) => {
    if (poll !== undefined) knownFields(poll, option, ['limit', 'window'])
    return poll
  }
  /** Store that counts `poll`. @default memoryStore(): in this process */
  store?: Option<Store> = checkedElsewhere
}

const ownPath = /^\/([A-Za-z0-9-]{1,64})\/?$/

/**
 * Shows jobs to the clients that own them: `GET /<id>` returns the state of a job, `DELETE /<id>`
 * cancels it.
 * @example
 * app.use('/jobs', mount(statusMonitor({ queue })))
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function statusMonitor<Native = unknown>(
  options: StatusMonitorOptions<Native>,
): Handler<Native> {
  const settings = readOptions(new MonitorTable<Native>(), options, 'statusMonitor')
  const { queue } = settings
  const limiter = pollLimiter(settings)

  async function look(id: string, identity: string): Promise<JobAnswer> {
    const job = await queue.status(id, identity)
    if (!job) return problem(404)
    if (!isOpen(job)) return endedAnswer(job, { queue })
    return jobAnswer(job, job.state === 'pending' ? await queue.expectedWaitMs() : 0)
  }

  async function cancel(id: string, identity: string): Promise<JobAnswer> {
    return cancelAnswers[await queue.cancel(id, identity)](id)
  }

  return async function monitorJob(request: HandlerRequest<Native>) {
    const id = ownPath.exec(request.path)?.[1]
    if (id === undefined) return undefined
    const { method } = request
    if (!methods.includes(method))
      return response(problem(405, {}, { Allow: methods.join(', ') }), method)
    const identity = await queue.identityOf(request.native, request)
    if (identity === undefined) return response(problem(404), method)
    const { allowed, retryAfterMs } = await limiter.consume(identity)
    if (!allowed) return response(quotaProblem('poll', retryAfterMs), method)
    const answer = await orUnavailable(() =>
      method === 'DELETE' ? cancel(id, identity) : look(id, identity),
    )
    return response(answer, method)
  }
}

const methods = ['GET', 'HEAD', 'DELETE']

const cancelAnswers: { readonly [outcome in Cancelled]: (id: string) => JobAnswer } = {
  cancelled: (id) => json(200, { id, status: 'cancelled' }),
  cancelling: (id) => json(202, { id, status: 'running' }, { 'Retry-After': '1' }),
  finished: () => problem(409, { detail: 'The job has ended.' }),
  unknown: () => problem(404),
}

function pollLimiter({ poll, store }: Pick<StatusMonitorOptions, 'poll' | 'store'>): Limiter {
  const { limit, window } = poll ?? pollPolicy
  const counted = store ? { store: withoutRegions(store) } : {}
  return createLimiter({ ...pollPolicy, limit, window, ...counted })
}

function response({ status, headers, body }: JobAnswer, method: string): HandlerResponse {
  return method === 'HEAD' ? { status, headers } : { status, headers, body }
}
