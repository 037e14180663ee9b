import { runInNewContext } from 'node:vm'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

/** The globals of a runtime for fetch handlers, as far as a guard may use them. */
const runtime = () => ({ console, setTimeout, clearTimeout, setInterval, clearInterval })

async function run(script: string): Promise<unknown> {
  const { outputFiles } = await build({
    stdin: { contents: script, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'neutral',
    format: 'iife',
    globalName: 'result',
    mainFields: ['module', 'main'],
    conditions: ['@sluice/source'],
    logLevel: 'silent',
  })
  return runInNewContext(`${outputFiles[0]?.text}; result.answers`, runtime())
}

const prelude = `
  import { all, apiKey, createGuard, firstOf, header, ip, user } from '@sluice/http'
  const routing = { caseSensitive: true, ignoreTrailingSlash: false, ignoreDuplicateSlashes: false }
  const guardOf = (options) => createGuard(options, { where: 'rateLimit', routing })
  function context(address, headers = {}) {
    const fields = new Map()
    const response = {
      headersSent: false,
      getHeaderNames: () => [...fields.keys()].map((name) => name.toLowerCase()),
      getHeader: (name) => fields.get(name),
      setHeader: (name, value) => void fields.set(name, value),
      removeHeader: (name) => void fields.delete(name),
    }
    const request = { method: 'GET', path: '/', route: undefined, ip: address, header: (name) => headers[name] }
    return { native: {}, request, response, scope: '', settleAtEnd() {} }
  }
`

describe('in a runtime without Node, a guard', () => {
  it('counts addresses and keys, and refuses', async () => {
    const answers = await run(`${prelude}
      const guard = guardOf({
        limit: 1, window: '1m',
        key: firstOf(all(header('x-tenant'), ip()), apiKey({ verify: (key) => key === 'k' }), user(() => undefined), ip()),
      })
      export const answers = [
        guard.check(context('203.0.113.9')),
        guard.check(context('203.0.113.9')),
        guard.check(context('2001:db8::1')),
        guard.check(context('2001:db8::1', { 'x-api-key': 'k' })),
      ].map(({ verdict }) => [verdict.action, verdict.status, verdict.body?.text].filter(Boolean))
    `)
    const problem = expect.stringContaining('"title":"Quota Exceeded","status":429')
    expect(answers).toEqual([['pass'], ['reject', 429, problem], ['pass'], ['pass']])
  })

  it('counts requests in flight', async () => {
    const answers = await run(`${prelude}
      const guard = guardOf({ limit: 1, algorithm: 'concurrency' })
      const first = guard.check(context('203.0.113.9'))
      const second = guard.check(context('203.0.113.9'))
      first.hold.finish(200)
      export const answers = [first.verdict.action, second.verdict.action]
    `)
    expect(answers).toEqual(['pass', 'reject'])
  })

  it('says that routes need a router', async () => {
    const answers = await run(`${prelude}
      let message
      try { guardOf({ routes: { '/r': { limit: 1, window: '1m' } } }) } catch (error) { message = error.message }
      export const answers = message
    `)
    expect(answers).toMatch(/^routes must be left out, since this adapter has no router for it/)
  })
})
