import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expectLimited, expectNotLimited } from '@sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pageFiles } from '../examples/page-modules.ts'
import { type RunningExample, startNode } from '../examples/start-example.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { installPacked } from './consumer.ts'

const ours = ['core', 'fetch', 'headers', 'http']
const dependencies = {
  ...{ next: '^16.0.0', react: '^19.0.0', 'react-dom': '^19.0.0', typescript: '~5.9.3' },
  ...{ '@types/node': '^20.0.0', '@types/react': '^19.0.0' },
}
const recipe = pageFiles('docs/recipes.md', 'Next.js route handlers')
const env = { NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' } as const

/** As `create-next-app` has it: `next build` checks the types of the recipe. */
const compilerOptions = {
  ...{ target: 'es2017', lib: ['dom', 'dom.iterable', 'esnext'], strict: true, noEmit: true },
  ...{ module: 'esnext', moduleResolution: 'bundler', jsx: 'react-jsx', isolatedModules: true },
  ...{ skipLibCheck: true, plugins: [{ name: 'next' }] },
}

const files: Record<string, string> = {
  ...Object.fromEntries(recipe),
  'app/api/seen/route.ts': `export const GET = (request: Request) =>
    Response.json(request.headers.get('x-forwarded-for'))`,
  'tsconfig.json': JSON.stringify({ compilerOptions, include: ['**/*.ts', '.next/types/**/*.ts'] }),
}

describe('the recipe for Next.js, built and started', () => {
  const home = temporaryFolder('next')
  let next: RunningExample
  let base: string

  beforeAll(async () => {
    const cwd = home.path
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(cwd, path)), { recursive: true })
      await writeFile(join(cwd, path), text)
    }
    await installPacked(cwd, ours, { dependencies })

    const bin = join(cwd, 'node_modules/next/dist/bin/next')
    expect(await startNode([bin, 'build'], cwd, env).ended()).toMatchObject({ code: 0 })
    const port = await freePort()
    next = startNode([bin, 'start', '-p', `${port}`, '-H', '127.0.0.1'], cwd, env)
    await next.printed(/Ready in/)
    base = `http://127.0.0.1:${port}`
  }, 600_000)

  afterAll(async () => {
    await next?.stop()
    home[Symbol.dispose]()
  })

  const ask = (path: string, headers: Record<string, string>, method = 'GET') =>
    fetch(base + path, { headers, method })

  it('limits a route handler, and counts HEAD as GET', async () => {
    const ada = { 'x-real-ip': '203.0.113.9' }
    await expectNotLimited(await ask('/api/items/1', ada, 'HEAD'), { remaining: 99 })
    for (let i = 0; i < 98; i += 1) await ask(`/api/items/${i}`, ada)
    const last = await ask('/api/items/7', ada)
    expect(await last.clone().json()).toEqual({ id: '7' })
    await expectNotLimited(last, { remaining: 0 })

    const refused = await ask('/api/items/8', ada)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    await expectLimited(refused, { policy: 'default-api-items-id' })
    await expectNotLimited(await ask('/api/items/8', { 'x-real-ip': '203.0.113.10' }))
  })

  it('limits all other routes in the proxy', async () => {
    const ada = { 'x-real-ip': '203.0.113.9' }
    await expectNotLimited(await ask('/api/seen', ada), { policy: 'api', remaining: 299 })
    for (let i = 0; i < 299; i += 1) await ask('/api/seen', ada)
    await expectLimited(await ask('/api/seen', ada), { policy: 'api' })
  })

  it('fails for a request without the field of the proxy', async () => {
    expect((await ask('/api/items/1', {})).status).toBe(500)
    expect((await ask('/api/seen', {})).status).toBe(500)
  })

  it("passes on a client's X-Forwarded-For, as documented", async () => {
    const seen = async (headers: Record<string, string>) =>
      (await ask('/api/seen', { 'x-real-ip': '203.0.113.11', ...headers })).json()
    expect(await seen({})).toMatch(/127\.0\.0\.1$/)
    expect(await seen({ 'x-forwarded-for': '198.51.100.1' })).toBe('198.51.100.1')
  })
})
