// Run without require(esm), so that Node loads the ESM and the CommonJS build of each package beside each other.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import * as client from '@sluice/client'
import * as core from '@sluice/core'
import * as adapter from '@sluice/express'
import * as queue from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const require = createRequire(import.meta.url)
const other = {
  ...{ client: require('@sluice/client'), core: require('@sluice/core') },
  ...{ adapter: require('@sluice/express'), queue: require('@sluice/queue') },
  redisStore: require('@sluice/redis').redisStore,
}
assert.notEqual(core.createLimiter, other.core.createLimiter, 'two copies of core')

// Names and sentinels mean the same.
assert.equal(core.unlimited, other.core.unlimited)
assert.ok(core.isSluiceError(caught(() => other.core.memoryStore({ wrong: 1 }))))

// A store of one form under limiters of both: one access, one registry, one quota, and a refund for either.
const store = other.core.memoryStore()
assert.ok(core.isMemoryStore(store))
const policies = [{ name: 'shared', limit: 2, window: '1m' }]
const ours = core.createLimiter({ policies, store })
const theirs = other.core.createLimiter({ policies, store })
const decision = await ours.consume('ada')
assert.equal((await theirs.consume('ada')).allowed, true)
assert.equal((await ours.consume('ada')).allowed, false)
await theirs.refund(decision)
await ours.refund(decision)
assert.equal((await ours.consume('ada')).allowed, true)
assert.equal((await theirs.consume('ada')).allowed, false)
assert.throws(() => core.createLimiter({ policies: [{ ...policies[0], window: '1h' }], store }), {
  code: 'SLUICE_POLICY_CONFLICT',
})
const slow = { apply: async () => [], change: async () => [], space: {} }
core.createLimiter({ policies, store: slow, fallback: core.memoryStore() })
assert.throws(
  () => other.core.createLimiter({ policies, store: slow, fallback: other.core.memoryStore() }),
  /another limiter on this store has a different fallback/,
)

// Two stores over one Redis client count in one place.
const redis = new Redis({ lazyConnect: true })
assert.ok(redisStore(redis).space)
assert.equal(redisStore(redis).space, other.redisStore(redis).space)
redis.disconnect()

// A warning is written once.
const warnings = []
console.warn = (text) => warnings.push(text)
core.warnOnce('once')
other.core.warnOnce('once')
assert.deepEqual(warnings, ['sluice: once'])

// A guard of one form and a store and a key of the other; two guards write one set of fields.
const app = express()
const key = other.adapter.header('x-api-key')
app.use(adapter.rateLimit({ store, key, name: 'minute', limit: 5, window: '1m' }))
app.use(other.adapter.rateLimit({ store, key, name: 'hour', limit: 1, window: '1h' }))
app.get('/', (_request, response) => {
  response.send('hello')
})
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const ask = () =>
  fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { 'x-api-key': 'ada' } })
const first = await ask()
assert.equal(first.status, 200)
assert.equal(first.headers.get('ratelimit-policy'), '"minute";q=5;w=60, "hour";q=1;w=3600')
assert.equal((await ask()).status, 429)
server.close()
server.closeAllConnections()

// What one client is told of a limit, clients of the other form know too.
const times = []
const api = async () => {
  times.push(performance.now())
  return times.length === 1
    ? new Response('', { status: 429, headers: { 'retry-after': '1' } })
    : new Response('')
}
await client.createFetch({ fetch: api, retries: 0 })('https://api.example.com/')
await other.client.createFetch({ fetch: api })('https://api.example.com/')
assert.ok(times[1] - times[0] > 900, 'the other client waits too')

// A job fails for good with the error of either form.
const broker = other.queue.memoryBroker()
const jobs = queue.createQueue({ broker })
const { id } = await jobs.enqueue({ identity: 'ada', payload: null })
const worker = queue.createWorker({
  broker,
  handler() {
    throw new other.queue.PermanentError('gone')
  },
})
while ((await jobs.status(id, 'ada')).state !== 'failed') {
  await new Promise((resolve) => setTimeout(resolve, 10))
}
assert.equal((await jobs.status(id, 'ada')).attempts, 1)
await worker.close()
await broker.close()
console.log('both: ok')

function caught(action) {
  try {
    return action()
  } catch (error) {
    return error
  }
}
