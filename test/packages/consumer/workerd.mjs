// Runs the bundle of worker.mjs in four isolates of workerd: prints what passed and failed by subject, as runtime.mjs does.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Miniflare } from 'miniflare'
import { runKit } from './run-kit.mjs'

const isolates = ['w0', 'w1', 'w2', 'w3']

function start() {
  const [first] = isolates
  const workers = isolates.map((name) => ({
    name,
    modules: true,
    scriptPath: 'worker.bundle.mjs',
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat', 'enable_request_signal'],
    durableObjects: {
      COUNTS: {
        ...{ className: 'Counts', useSQLite: true },
        ...(name !== first && { scriptName: first }),
      },
    },
  }))
  return new Miniflare({ workers, durableObjectsPersist: './objects' })
}
let running = start()

async function ask(path, { address = '203.0.113.9', isolate = 'w0', signal } = {}) {
  const worker = await running.getWorker(isolate)
  const headers = { 'cf-connecting-ip': address }
  return worker.fetch(`http://localhost${path}`, { headers, signal })
}
const json = async (path, options) => (await ask(path, options)).json()

/** The tests of a handler with a limit of 5. */
function refusals(path) {
  return ({ it }) => {
    it('refuses the sixth request as it does on Node', async () => {
      for (const left of [4, 3, 2, 1, 0]) {
        const answer = await ask(path)
        assert.equal((await answer.text()).trim(), 'hello')
        assert.equal(answer.headers.get('ratelimit'), `"default";r=${left};t=10`)
      }
      const refused = await ask(path)
      assert.equal(refused.status, 429)
      assert.equal(refused.headers.get('retry-after'), '10')
      assert.deepEqual((await refused.json())['violated-policies'], ['default'])
    })
    it('counts another address apart', async () => {
      assert.equal((await ask(path, { address: '203.0.113.10' })).status, 200)
    })
  }
}

/** @param path of short streams, with `some` in it */
function slots(path) {
  return ({ it }) => {
    it('holds a slot until the stream of a response has ended', async () => {
      const first = await ask(path)
      const second = await ask(path)
      assert.deepEqual([first.status, second.status], [200, 429])
      await second.text()
      assert.equal(await first.text(), 'hellohellohello')
      const third = await ask(path)
      assert.equal(third.status, 200)
      await third.text()
    })
    it('frees the slot of a client that leaves', async () => {
      const leaving = new AbortController()
      const url = new URL(path.replace('some', 'long'), await running.ready)
      // Otherwise the server gathers the stream to compress it.
      const headers = { 'cf-connecting-ip': '203.0.113.9', 'accept-encoding': 'identity' }
      const first = await fetch(url, { headers, signal: leaving.signal })
      assert.equal(first.status, 200)
      await first.body.getReader().read()
      leaving.abort()
      for (let wait = 0; ; wait += 1) {
        const next = await ask(path)
        await next.text()
        if (next.status === 200) break
        assert.ok(wait < 30, 'the slot is still held after three seconds')
        await sleep(100)
      }
    })
  }
}

function objects({ it }) {
  it('admits exactly the limit of 200 requests over four isolates', async () => {
    const all = Array.from({ length: 50 }, () => isolates).flat()
    const admitted = await Promise.all(all.map((isolate) => json('/object/count', { isolate })))
    assert.equal(admitted.filter(Boolean).length, 37)
  })
  it('counts on after an eviction', async () => {
    assert.match(await json('/object/evict'), /evicted/)
    assert.equal(await json('/object/count', { isolate: 'w1' }), false)
  })
  it('counts on after a restart', async () => {
    await running.dispose()
    running = start()
    assert.equal(await json('/object/count', { isolate: 'w2' }), false)
  })
  it('deletes counts that have ended', async () => {
    assert.equal(await json('/object/sweep'), 0)
    assert.equal(await json('/object/count', { isolate: 'w3' }), true)
  })
}

/** The results of a kit that ran inside, and of the tests here. */
async function together(path, describeAll) {
  const [inside, here] = [await json(path), await runKit(describeAll)]
  return { tests: inside.tests + here.tests, failed: [...inside.failed, ...here.failed] }
}

const results = {
  'memory store': await json('/kit'),
  'Durable Object': await together('/object/kit', (kit) => [
    refusals('/object')(kit),
    objects(kit),
  ]),
  '@sluice/fetch': await runKit((kit) => [refusals('/')(kit), slots('/slots/some')(kit)]),
  '@sluice/hono': await runKit((kit) => [refusals('/hono')(kit), slots('/hono-slots/some')(kit)]),
}
await running.dispose()
console.log(JSON.stringify(results))
