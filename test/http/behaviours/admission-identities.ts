import { apiKey, firstOf, ip } from '@sluice/http'
import {
  createAdmission,
  createQueue,
  memoryBroker,
  type Queue,
  statusMonitor,
} from '@sluice/queue'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import type { NativeRequest } from '../../adapters/drivers/driver.ts'
import {
  ada,
  idOf,
  keyed,
  look,
  post,
  type QueueingSetup,
  reaches,
  startQueueing,
} from '../../adapters/queueing-app.ts'

/** Whose jobs are, where all requests come from one address. */
export const admissionIdentities: Behaviour = ({ start }) => {
  const queueing = (setup?: QueueingSetup) => startQueueing(start, setup)
  const bob = { 'x-api-key': 'bob' }
  const nobody = { 'x-api-key': '' }
  const remove = (headers: Record<string, string>) => ({ method: 'DELETE', headers }) as const

  it('keeps the jobs and idempotency keys of two users behind one address apart', async () => {
    const { app, work } = await queueing({ limits: { limit: 9, window: '1m', key: apiKey() } })
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    const other = await app.ask('/reports', keyed('"1"', { headers: bob }))
    expect(other.status).toBe(202)
    expect(idOf(other)).not.toBe(id)
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(bob))).status).toBe(404)
    work(() => 'of ada')
    await reaches(app, id, 'done')
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await app.ask('/reports', keyed('"1"', { headers: bob }))).body).not.toContain(id)
  })

  it('has no jobs for a request without a key: it neither makes one, nor sees or cancels any', async () => {
    const { app, queue, reached } = await queueing()
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    const refused = await app.ask('/reports', keyed('"1"', { headers: nobody }))
    expect(refused.status).toBe(403)
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(refused.body).not.toContain(id)
    expect((await look(app, id, nobody)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(nobody))).status).toBe(404)
    expect(reached).not.toHaveBeenCalled()
    expect(await queue.depth()).toMatchObject({ depth: 1 })
  })

  it.each(['overflow', 'preferred'] as const)(
    'lets a request without a key pass that need not be queued: %s',
    async (admit) => {
      const limits = { limit: 1, window: '1m' } as const
      const { app, queue } = await queueing({ admission: { admit }, limits })
      const headers = { ...nobody, prefer: 'respond-async' }
      expect(await app.statuses(2, '/reports', keyed('"1"', { headers }))).toEqual([200, 429])
      expect(await queue.depth()).toMatchObject({ depth: 0 })
    },
  )

  it('shares jobs by address only where the application says so', async () => {
    const identity = firstOf<NativeRequest>(apiKey(), ip())
    const { app } = await queueing({ queue: { identity } })
    const id = idOf(await app.ask('/reports', post({ headers: nobody })))
    expect((await look(app, id, nobody)).status).toBe(200)
    expect((await look(app, id)).status).toBe(404)
    const own = idOf(await app.ask('/reports', post()))
    expect((await look(app, own, nobody)).status).toBe(404)
    expect((await look(app, own, { 'x-api-key': '@ip/127.0.0.1' })).status).toBe(404)
  })

  it('asks the queue whose a job is, whatever a route counts by', async () => {
    const { app } = await queueing({ limits: { limit: 9, window: '1m', key: ip() } })
    const id = idOf(await app.ask('/reports', keyed('"1"')))
    expect((await look(app, id, bob)).status).toBe(404)
    expect(idOf(await app.ask('/reports', keyed('"1"', { headers: bob })))).not.toBe(id)
  })

  it('needs no limits before the monitor, which knows by itself whose a job is', async () => {
    const queue = createQueue<NativeRequest>({ broker: memoryBroker(), identity: apiKey() })
    const app = await start({ mounts: [['/jobs', statusMonitor({ queue: queue as Queue })]] })
    const made = await queue.enqueue({ identity: '@key/ada', payload: null })
    const id = 'id' in made ? made.id : ''
    expect((await look(app, id)).status).toBe(200)
    expect((await look(app, id, bob)).status).toBe(404)
    expect((await look(app, id, nobody)).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(bob))).status).toBe(404)
    expect((await app.ask(`/jobs/${id}`, remove(ada))).status).toBe(200)
  })

  it('does not guess whose requests are', () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const queue = createQueue({ broker: memoryBroker() })
    const message = /^queue must know whose a request is: .*identity: apiKey\({ verify }\)/
    expect(() => createAdmission({ queue, monitor: '/jobs' })).toThrow(message)
    expect(() => statusMonitor({ queue })).toThrow(message)
  })
}
