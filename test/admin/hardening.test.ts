import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, createServer, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createAdmin } from '@sluice/admin'
import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import type { HandlerRequest } from '@sluice/http'
import { mount } from '@sluice/koa'
import { openPolicies } from '@sluice/policies'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { burst, openInTest } from '../policies/live-policies.ts'
import { policyFolder } from '../policies/policy-folder.ts'
import { until } from '../support/until.ts'
import { everything, frameworks, startAdmin } from './admin-server.ts'
import { callNow, operations } from './operations.ts'
import { storeKinds, storesIn } from './stores.ts'

const reason = 'a test'

describe.each(frameworks)('answers of the admin API in %s', (framework) => {
  it('are kept by no cache, and are no document of another site', async () => {
    const started = await startAdmin({ framework })
    for (const [name, operation] of Object.entries(operations)) {
      const { status, etag, field } = await callNow(started, operation)
      const isRead = operation.method === 'GET'
      expect(status, name).toBe(200)
      expect(field('cache-control'), name).toBe(isRead ? 'private, no-cache' : 'no-store')
      expect(etag === undefined, name).toBe(!isRead)
      expect(field('content-type'), name).toContain('application/json')
      expect(field('x-content-type-options'), name).toBe('nosniff')
      expect(field('content-security-policy'), name).toContain("default-src 'none'")
      expect(field('cross-origin-resource-policy'), name).toBe('same-origin')
    }
    const refused = [
      await started.call('GET', 'nothing'),
      await started.call('POST', 'keys/reset', { body: {} }),
      await started.call('GET', 'audit', { headers: { origin: 'https://evil.example' } }),
    ]
    for (const { field } of refused) {
      expect(field('cache-control')).toBe('no-store')
      expect(field('content-type')).toContain('application/problem+json')
      expect(field('x-content-type-options')).toBe('nosniff')
    }
  })

  it('find a queue by its name, whatever is in it', async () => {
    const names = ['reports/é 😀', '100%25', 'a?b#c', '..', 'jobs+1']
    const queues = names.map((name) => createQueue({ broker: memoryBroker({ name }) }))
    const { call } = await startAdmin({ framework, admin: { queues, authorize: () => everything } })
    for (const [index, name] of names.entries()) {
      // Clients take `..` out of a path, so that such a queue cannot be asked for.
      if (name === '..') continue
      const path = `queues/${encodeURIComponent(name)}/dead`
      const { status, body } = await call('GET', path)
      expect([status, body.queue], `${index} ${name}`).toEqual([200, name])
    }
  })
})

describe.each(storeKinds)('many operators at once, with a store in %s', (kind) => {
  const emptyStore = storesIn(kind)

  it('leave a record of each action', async () => {
    const { call } = await startAdmin({ store: await emptyStore() })
    const operators = Array.from({ length: 60 }, (_, index) => `user-${index}`)
    const answers = await Promise.all(
      operators.map((user) => call('POST', 'keys/reset', { body: { key: { user }, reason } })),
    )
    expect(answers.map(({ status }) => status)).toEqual(operators.map(() => 200))
    const { records } = (await call('GET', 'audit?most=1000')).body
    const done = records.filter(({ phase }: { phase: string }) => phase === 'done')
    const begun = records.filter(({ phase }: { phase: string }) => phase === 'begun')
    expect([done.length, begun.length]).toEqual([61, 60])
  })

  it('change policies one after the other: all but one are told to look again', async () => {
    const { call, policies } = await startAdmin({ store: await emptyStore() })
    const headers = { 'if-match': `"${policies.version}"` }
    const answers = await Promise.all(
      [6, 7, 8, 9, 10].map((value) => {
        const set = [{ policy: 'burst', field: 'limit', value }]
        return call('POST', 'policies/changes', { headers, body: { set, reason } })
      }),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    expect((await call('GET', 'audit')).body.records).toHaveLength(2)
  })
})

describe('a policy file with a mistake', () => {
  it('is refused and shown, and what is in force can be changed', async () => {
    const opened = await openInTest('policies: [{ name: burst, limit: 5, window: 1h }]')
    const { policies, store } = opened
    const { call } = await startAdmin({ store, admin: { policies, authorize: () => everything } })
    await opened.spoil('policies: [{ name: burst, limit: -5, window: 1h }]')
    const shown = (await call('GET', 'policies')).body
    expect(shown.policies).toMatchObject([{ name: 'burst', limit: 5 }])
    expect(shown.refused.message).toContain('limit')
    await until('the fleet says so', async () => {
      const { instances } = (await call('GET', 'fleet')).body
      return instances.some(({ isThis, refused }: { isThis: boolean; refused?: object }) => {
        return isThis && refused !== undefined
      })
    })
    const set = [{ policy: 'burst', field: 'limit', value: 6 }]
    const headers = { 'if-match': `"${shown.version}"` }
    const changed = await call('POST', 'policies/changes', { headers, body: { set, reason } })
    expect(changed.status).toBe(200)
    expect((await call('GET', 'policies')).body.policies).toMatchObject([{ limit: 6 }])
  })

  const secret = 'sk_live_ada'

  it('shows no identity in it to those who may only read, nor in a log', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    onTestFinished(() => warn.mockRestore())
    const file = await policyFolder(burst(5))
    const store = memoryStore()
    const policies = await openPolicies({ file, store })
    onTestFinished(() => policies.close())
    const admin = { policies, authorize: () => ({ actor: 'eve', may: ['read'] }) as const }
    rateLimit({ policies, store })
    const { call } = await startAdmin({ store, admin })
    const mistakes = [
      [`overrides: [{ policy: burst, key: ${secret}, limit: 9 }]`, ':2:35: overrides[0].key'],
      [`overrides: [{ policy: burst, key: { ip: ${secret} } }]`, ':3:13: overrides[0]'],
      [`overrides: [{ policy: burst, key: { ${secret}: x }, limit: 9 }]`, 'overrides[0].key must'],
      [`overrides: [*${secret}]`, ':1:1: no YAML'],
    ] as const
    for (const [index, [text, place]] of mistakes.entries()) {
      await writeFile(file, `${burst(5)}${'\n'.repeat(index + 1)}${text}`)
      await until(text, () => policies.state.refused?.message.includes(place) === true)
      const answers = [await call('GET', 'policies'), await call('GET', 'fleet')]
      const shown = JSON.stringify(answers.map(({ body }) => body))
      expect(shown, text).toContain('"refused":')
      expect(shown, text).not.toContain(secret)
    }
    expect(warn).toHaveBeenCalledTimes(mistakes.length)
    expect(JSON.stringify(warn.mock.calls)).not.toContain(secret)
  })

  it('nor are the lists of a route, in the differences of two versions', async () => {
    const opened = await openInTest(burst(5))
    const { policies, store } = opened
    const admin = { policies, authorize: () => ({ actor: 'eve', may: ['read'] }) as const }
    const { call } = await startAdmin({ store, admin })
    const { version } = policies
    await opened.change(
      `${burst(5)}\nroutes: { /: { policies: [burst], block: { keys: [${secret}] } } }`,
    )
    const { body } = await call('GET', `policies/diff?from=${version}`)
    expect(body.differences).toMatchObject([{ path: 'routes./', to: { policies: ['burst'] } }])
    expect(JSON.stringify(body)).not.toContain(secret)
  })
})

describe('a request without a Host', () => {
  const requestOf = (headers: Readonly<Record<string, string>>): HandlerRequest => ({
    ...{ native: {}, method: 'GET', path: '/api/v1/session', query: new URLSearchParams() },
    ...{ originalPath: '/api/v1/session', peer: '127.0.0.1', ip: undefined, route: undefined },
    header: (name) => headers[name],
  })

  it.each([
    [{}, 200],
    [{ origin: 'null' }, 403],
    [{ origin: 'file://' }, 403],
    [{ origin: 'data:' }, 403],
    [{ origin: 'https://evil.example' }, 403],
  ])('has no origin of its own: %j is answered %i', async (headers, status) => {
    const handler = createAdmin({ authorize: () => everything })
    expect((await handler(requestOf(headers)))?.status).toBe(status)
    const local = createAdmin({ authorize: 'localhost' })
    expect((await local(requestOf(headers)))?.status).toBe(403)
  })
})

it('over HTTP/2 the authority is the Host', async () => {
  const app = new Koa()
  app.use(mount(createAdmin({ authorize: 'localhost' }), '/limits'))
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const session = (headers: Readonly<Record<string, string>>) =>
    askHttp2(port, { ':path': '/limits/api/v1/session', ...headers })
  expect(await session({})).toBe(200)
  expect(await session({ origin: `http://127.0.0.1:${port}` })).toBe(200)
  expect(await session({ origin: 'http://evil.example' })).toBe(403)
  expect(await session({ origin: 'null' })).toBe(403)
  expect(await session({ ':authority': 'evil.example' })).toBe(403)
})

it('dead letters are run again once, however many operators ask for it', async () => {
  let { may } = everything
  const admin = { authorize: () => ({ actor: 'ada', may }) }
  const { call, queue } = await startAdmin({ admin })
  let runs = 0
  const worker = createWorker({
    broker: queue.broker,
    attempts: 1,
    handler: async () => {
      runs += 1
      if (runs === 1) throw new Error('the printer is away')
    },
  })
  onTestFinished(() => worker.close())
  await queue.enqueue({ identity: 'ada', payload: 'a page' })
  await until('it is a dead letter', async () => (await queue.depth()).dead === 1)
  const { jobs } = (await call('GET', 'queues/jobs/dead')).body
  expect(jobs).toMatchObject([{ error: 'the printer is away' }])
  may = ['read']
  expect((await call('GET', 'queues/jobs/dead')).body.jobs[0].error).toBeUndefined()
  may = everything.may
  const body = { ids: [jobs[0].id], reason }
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => call('POST', 'queues/jobs/dead/retry', { body })),
  )
  const done = answers.flatMap(({ body }) => body.done)
  expect(done).toEqual([jobs[0].id])
  await until('it has run again', async () => (await queue.depth()).dead === 0 && runs === 2)
})

/** Asks a server over HTTP/2. @returns the status */
async function askHttp2(port: number, headers: OutgoingHttpHeaders): Promise<number> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request(headers)
    const [answer] = await once(stream, 'response')
    stream.close()
    return Number(answer[':status'])
  } finally {
    session.close()
  }
}
