import { apiKey } from '@sluice/http'
import {
  type AdmissionOptions,
  createAdmission,
  createQueue,
  createWorker,
  type JobHandler,
  memoryBroker,
  type Queue,
  type QueueOptions,
  type StatusMonitorOptions,
  statusMonitor,
} from '@sluice/queue'
import { onTestFinished, vi } from 'vitest'
import { inTurn } from '../support/in-turn.ts'
import { until } from '../support/until.ts'
import type { App } from './adapter-conformance.ts'
import type { Answer, Question } from './ask.ts'
import type { AppSetup, Limits, NativeRequest } from './drivers/driver.ts'

export interface QueueingSetup extends Omit<AppSetup, 'limits'> {
  readonly queue?: Partial<QueueOptions<NativeRequest>>
  readonly admission?: Partial<AdmissionOptions<NativeRequest>>
  readonly monitor?: Partial<StatusMonitorOptions>
  readonly limits?: Limits
}

/** Starts an application whose route /reports has an admission, beside the monitor of its jobs. */
export async function startQueueing(
  start: (setup: AppSetup) => Promise<App>,
  { queue: own, admission, monitor, limits: ownLimits, ...setup }: QueueingSetup = {},
) {
  const broker = own?.broker ?? memoryBroker()
  const queue = createQueue<NativeRequest>({ identity: apiKey(), ...own, broker })
  /** Called when a request gets to the route of the application. */
  const reached = vi.fn()
  const limits: Limits = {
    ...(ownLimits ?? { limit: 5, window: '1m' }),
    admission: createAdmission({ queue, monitor: '/jobs', ...admission }),
  }
  const app = await start({
    mounts: [['/jobs', statusMonitor({ queue: queue as Queue, ...monitor })]],
    routes: [
      { method: 'POST', path: '/reports', reached, limits },
      { method: 'GET', path: '/reports', reached, limits },
    ],
    ...setup,
  })
  function work(handler: JobHandler): void {
    const worker = createWorker({ broker, handler, attempts: 1 })
    onTestFinished(() => worker.close({ grace: 1 }))
  }
  /** Asks for a report. @default a POST of ada */
  const send = (question = post()) => app.ask('/reports', question)
  const sent = (...questions: readonly Question[]) =>
    inTurn(questions, async (question) => (await send(question)).status)
  return { app, queue, broker, reached, work, send, sent }
}

export const ada = { 'x-api-key': 'ada' }

export const post = (fields: Partial<Question> = {}): Question => ({
  method: 'POST',
  body: '{"page":1}',
  ...fields,
  headers: { ...ada, 'content-type': 'application/json', ...fields.headers },
})

/** A request with an Idempotency-Key. */
export const keyed = (key: string, fields: Partial<Question> = {}): Question =>
  post({ ...fields, headers: { 'idempotency-key': key, ...fields.headers } })

export const idOf = ({ body }: Answer): string => JSON.parse(body).id

export const look = (app: App, id: string, headers: Question['headers'] = ada): Promise<Answer> =>
  app.ask(`/jobs/${id}`, { headers })

export const reaches = (app: App, id: string, state: string): Promise<void> =>
  until(`the job is ${state}`, async () => (await look(app, id)).body.includes(`"${state}"`))
