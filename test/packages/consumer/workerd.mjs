// Runs the bundle of worker.mjs in workerd: prints what passed and failed by subject, as runtime.mjs does.
import assert from 'node:assert/strict'
import { Miniflare } from 'miniflare'
import { runKit } from './run-kit.mjs'

const worker = new Miniflare({
  modules: true,
  scriptPath: 'worker.bundle.mjs',
  compatibilityDate: '2026-04-01',
  compatibilityFlags: ['nodejs_compat'],
})

function ask(path, address) {
  return worker.dispatchFetch(`http://localhost${path}`, {
    headers: { 'cf-connecting-ip': address },
  })
}

/** The tests of a handler with a limit of 5. */
function refusals(path) {
  return ({ it }) => {
    it('refuses the sixth request as it does on Node', async () => {
      for (const left of [4, 3, 2, 1, 0]) {
        const answer = await ask(path, '203.0.113.9')
        assert.equal(await answer.text(), 'hello')
        assert.equal(answer.headers.get('ratelimit'), `"default";r=${left};t=10`)
      }
      const refused = await ask(path, '203.0.113.9')
      assert.equal(refused.status, 429)
      assert.equal(refused.headers.get('retry-after'), '10')
      assert.deepEqual((await refused.json())['violated-policies'], ['default'])
    })
    it('counts another address apart', async () => {
      assert.equal((await ask(path, '203.0.113.10')).status, 200)
    })
  }
}

function leases({ it }) {
  it('holds a slot until the stream of a response has ended', async () => {
    const first = await ask('/slots', '203.0.113.9')
    const second = await ask('/slots', '203.0.113.9')
    assert.deepEqual([first.status, second.status], [200, 429])
    await second.text()
    assert.equal(await first.text(), 'hello')
    const third = await ask('/slots', '203.0.113.9')
    assert.equal(third.status, 200)
    await third.text()
  })
}

const results = {
  'memory store': await (await ask('/kit', '203.0.113.9')).json(),
  '@sluice/fetch': await runKit((kit) => [refusals('/')(kit), leases(kit)]),
  '@sluice/hono': await runKit(refusals('/hono')),
}
await worker.dispose()
console.log(JSON.stringify(results))
