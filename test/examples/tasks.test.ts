import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { NestFactory } from '@nestjs/core'
import { expectLimited, expectNotLimited } from '@sluice/testing'
import type { Express } from 'express'
import type { FastifyInstance } from 'fastify'
import type { Hono } from 'hono'
import type Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { expandTabs } from '../../docs/.vitepress/tabs/expand-tabs.ts'
import { portOf } from '../adapters/drivers/driver.ts'
import { bundledScript } from '../support/bundled-script.ts'
import { repeated } from '../support/in-turn.ts'
import { run } from '../support/run.ts'
import { readText, root } from '../support/workspace.ts'
import { tabModules, tryModules } from './page-modules.ts'

const blocks = tabModules('docs/tasks.md')
const page = tryModules(blocks)

/** Listens with what a block exports. */
const servers = {
  Express: ({ app }: { app: Express }) => createServer(app),
  Koa: ({ app }: { app: Koa }) => createServer(app.callback()),
  Hono: ({ app }: { app: Hono }) => nodeServer(app.fetch),
  fetch: ({ handler }: { handler: (request: Request, info: object) => Promise<Response> }) =>
    nodeServer((asked: Request, { incoming }: HttpBindings) =>
      handler(asked, { remoteAddress: incoming.socket.remoteAddress }),
    ),
  async Fastify({ app }: { app: FastifyInstance }) {
    await app.ready()
    return app.server
  },
  async NestJS({ app, AppModule }: { app?: Nest; AppModule?: object }) {
    const nest = app ?? (await NestFactory.create(Object(AppModule), { logger: false }))
    await nest.init()
    return createServer(nest.getHttpAdapter().getInstance() as RequestListener)
  },
}
type Nest = Awaited<ReturnType<typeof NestFactory.create>>
const frameworks = Object.keys(servers) as (keyof typeof servers)[]

function nodeServer(fetch: unknown): Server {
  return createAdaptorServer({ fetch: fetch as never, overrideGlobalObjects: false }) as Server
}

/** Serves the block of a task. @returns the address of its server */
async function serve(task: string, framework: keyof typeof servers): Promise<string> {
  const server = await servers[framework](await page.load(`${task} > ${framework}`))
  return `http://127.0.0.1:${await portOf(server.listen(0, '127.0.0.1'))}`
}

describe.each(frameworks)('the task in %s', (framework) => {
  it('limits by user, and else by address', async () => {
    const url = await serve('Limit by user', framework)
    const ask = (key: string) => fetch(`${url}/items`, { headers: { 'x-api-key': key } })
    for (let i = 0; i < 100; i += 1) await ask('key-of-ada')
    await expectLimited(await ask('key-of-ada'), { retryAfter: 60 })
    await expectNotLimited(await ask('key-of-bob'), { remaining: 99 })
    await expectNotLimited(await ask('made up'), { remaining: 99 })
    const again = await ask('made up too')
    await expectNotLimited(again, { remaining: 98 })
    expect(await again.json()).toEqual([])
  })

  it('limits failed logins', async () => {
    const url = await serve('Limit logins', framework)
    const post = (body: string) =>
      fetch(`${url}/login`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
      })
    const login = (name: unknown, password: string) => post(JSON.stringify({ name, password }))
    const right = await repeated(10, () => login('ada', 'correct horse battery staple'))
    expect(right.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const wrong = await Promise.all(Array.from({ length: 20 }, () => login(' Ada', 'x')))
    expect(wrong.filter(({ status }) => status === 401)).toHaveLength(5)
    const refused = wrong.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(15)
    expect(refused[0]?.headers.get('retry-after')).toBe('900')
    expect(wrong.some(({ headers }) => headers.has('ratelimit'))).toBe(false)
    expect((await login('bob', 'x')).status).toBe(401)
    expect((await login(5, 'x')).status).toBe(401)
    expect((await post('[]')).status).toBe(401)
  })

  it('gives each plan its limits', async () => {
    const url = await serve('Plans', framework)
    const limitsOf = async (key: string) => {
      const { headers } = await fetch(`${url}/items`, { headers: { 'x-api-key': key } })
      return [...(headers.get('ratelimit-policy') ?? '').matchAll(/q=(\d+)/g)].map(([, q]) => q)
    }
    expect(await limitsOf('key-of-ada')).toEqual(['60', '10000'])
    expect(await limitsOf('key-of-bob')).toEqual(['600', '1000000'])
    expect(await limitsOf('made up')).toEqual(['20', '1000'])
    vi.setSystemTime(Date.UTC(2026, 10, 30, 22, 59, 30))
    const { headers } = await fetch(`${url}/items`, { headers: { 'x-api-key': 'key-of-ada' } })
    expect(headers.get('ratelimit')).toBe('"minute";r=59;t=60, "month";r=9998;t=30')
  })

  it('limits uploads by their bytes, and two at a time', async () => {
    const url = await serve('Uploads', framework)
    const put = (bytes: number) =>
      fetch(`${url}/files/a`, { method: 'PUT', body: new Uint8Array(bytes) })
    const saved = await put(4_000_000)
    expect([saved.status, await saved.json()]).toEqual([201, { saved: 4_000_000 }])
    const started = await repeated(2, () => startUpload(url, 1_000_000))
    await vi.waitFor(async () => expect((await put(1)).status).toBe(429))
    for (const upload of started) expect(await upload.finish()).toBe(201)
    const refused = await put(4_000_001)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['bytes'] })
    expect((await put(3_900_000)).status).toBe(201)
    expect(await startUpload(url).then((upload) => upload.finish())).toBe(411)
  })

  it('proxies, and counts the client in front of the load balancer', async () => {
    const asked: object[] = []
    const upstream = createServer((incoming, response) => {
      const { method, url, headers } = incoming
      asked.push({ method, url, forwarded: headers['x-forwarded-for'] })
      if (url === '/busy')
        response.writeHead(429, { 'retry-after': '7', ratelimit: '"upstream";r=0;t=7' })
      incoming.pipe(response)
    })
    vi.stubEnv('UPSTREAM', `http://127.0.0.1:${await portOf(upstream.listen(0, '127.0.0.1'))}`)
    onTestFinished(() => void vi.unstubAllEnvs())
    const url = await serve('A rate-limiting proxy', framework)
    const post = (path: string, from: string) =>
      fetch(url + path, {
        ...{ method: 'POST', headers: { 'x-forwarded-for': from }, body: 'hello' },
      })

    const passed = await post('/a%20b?c=%64', '10.9.9.9, 203.0.113.9')
    await expectNotLimited(passed, { remaining: 99 })
    expect(await passed.text()).toBe('hello')
    expect(asked).toEqual([{ method: 'POST', url: '/a%20b?c=%64', forwarded: '203.0.113.9' }])
    const busy = await post('/busy', '10.8.8.8, 203.0.113.9')
    expect([busy.status, await busy.text()]).toEqual([429, 'hello'])
    expect(busy.headers.get('retry-after')).toBe('7')
    const field = framework === 'Hono' ? '"default";r=98;t=60' : '"upstream";r=0;t=7'
    expect(busy.headers.get('ratelimit')).toContain(field)
    for (let i = 0; i < 98; i += 1) await post('/', `10.0.0.${i}, 203.0.113.9`)
    expect(asked).toHaveLength(100)
    await expectLimited(await post('/', '203.0.113.10, 203.0.113.9'), { retryAfter: 60 })
    expect(asked).toHaveLength(100)
    await expectNotLimited(await post('/', '203.0.113.9, 203.0.113.10'), { remaining: 99 })
  })
})

/** Sends all of an upload but its last byte; without a length, in chunks. */
async function startUpload(url: string, bytes?: number) {
  const headers = bytes === undefined ? {} : { 'content-length': bytes }
  const sent = request(`${url}/files/b`, { method: 'PUT', headers })
  const answered = once(sent, 'response')
  sent.write(new Uint8Array((bytes ?? 2) - 1))
  return {
    async finish(): Promise<number> {
      sent.end('x')
      const [response] = await answered
      response.resume()
      return response.statusCode
    },
  }
}

describe('the page', () => {
  it('has tests of limits that pass', async () => {
    const tests = frameworks.map((framework) => `Test a limit > ${framework}`)
    const paths = tests.map((name) => page.pathOf(name))
    const all = join(page.folder, 'all.ts')
    await writeFile(all, paths.map((path) => `import ${JSON.stringify(path)}`).join('\n'))
    const bundle = await bundledScript(pathToFileURL(all))
    const printed = await run(process.execPath, ['--test-reporter=tap', bundle], { cwd: root })
    expect(printed).toMatch(new RegExp(`^# pass ${frameworks.length}$`, 'm'))
    expect(printed).toMatch(/^# fail 0$/m)
  })

  it('has a tab for each framework, all tested', () => {
    expect([...page.tried].sort()).toEqual(blocks.map(({ heading }) => heading).sort())
    expect(blocks).toHaveLength(6 * frameworks.length)
  })

  it('shows on GitHub what all frameworks share', () => {
    const source = readText('docs/tasks.md')
    expect(source.match(/^```ts tabs=/gm)).toHaveLength(6)
    expect(expandTabs(source)).not.toMatch(/tabs=|On \[the site\]|…/)
  })
})
