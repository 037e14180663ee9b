import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packages, readText, root } from '../support/workspace.ts'
import { ExampleRunner } from './example-runner.ts'

const readme = readText('README.md')
const blocks = [...readme.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, text = '']) => ({
  language,
  text,
}))
const [express = '', fastify = '', card = '', fastifyRoute = ''] = textsIn('ts')
const [refusal = ''] = textsIn('http')

let runner: ExampleRunner
let origins: readonly URL[]

beforeAll(async () => {
  // Inside the tests' folder, where its imports resolve as a user's do.
  runner = await ExampleRunner.create(join(root, 'test/examples'))
  // As it is shown, but for the port and the address of Redis.
  const programs = [express, fastify, card, withRoute()].map((program) =>
    program
      .replaceAll('3000', 'Number(process.env.PORT)')
      .replace('new Redis()', "new Redis(process.env.REDIS_URL ?? '')"),
  )
  origins = await Promise.all(programs.map((program) => runner.serve(program)))
})

afterAll(() => runner.stop())

describe('the README', () => {
  it.each([
    ['Express', 0],
    ['Fastify', 1],
  ])('shows what a client of %s gets after a hundred requests', async (_, block) => {
    const admitted = Array.from({ length: 100 }, () => fetch(originOf(block)))
    for (const { status } of await Promise.all(admitted)) expect(status).toBe(200)
    const [shown, ...fields] = refusal.trim().split('\n')
    const answer = await rawAnswer(originOf(block))
    expect(answer[0]).toBe(shown)
    expect(answer.map(comparable)).toEqual(expect.arrayContaining(fields.map(comparable)))
    // All fields of a limit are shown.
    expect(answer.filter((line) => /ratelimit|retry-after/i.test(line))).toHaveLength(6)
  })

  it('counts by API key, plan and tenant in Redis', async () => {
    const first = await ask(2, '/', { 'x-api-key': 'key-of-ada' })
    expect(first.headers.get('ratelimit-policy')).toBe(
      '"burst";q=10;w=1, "plan";q=60;w=60, "tenant";q=1000;w=60',
    )
    expect(await first.json()).toEqual({ left: 9 })
    const second = await ask(2, '/', { 'x-api-key': 'key-of-bob' })
    expect(second.headers.get('ratelimit')).toMatch(/"plan";r=599.*"tenant";r=998/)
    const stranger = await ask(2, '/', { 'x-api-key': 'made-up' })
    expect(stranger.headers.get('ratelimit')).toMatch(/"plan";r=19.*"tenant";r=999/)
    expect(Number(await runner.redis.cli('DBSIZE'))).toBeGreaterThan(0)
  })

  it('limits some routes differently', async () => {
    const post = { method: 'POST', headers: { 'x-api-key': 'key-of-ada' } }
    const reports: (string | null)[] = []
    for (let i = 0; i < 6; i += 1) {
      const { status, headers } = await fetch(new URL('/reports', originOf(2)), post)
      reports.push(status === 429 ? headers.get('retry-after') : headers.get('x-ratelimit-limit'))
    }
    expect(reports).toEqual(['5', '5', '5', '5', '5', '3600'])
    expect((await ask(2, '/health')).headers.has('ratelimit')).toBe(false)
    expect((await ask(3, '/search')).headers.get('x-ratelimit-remaining')).toBe('4')
    expect((await ask(3, '/')).headers.get('x-ratelimit-remaining')).toBe('99')
  })

  it('installs packages of this repository', () => {
    const names = packages().map(({ manifest }) => manifest.name)
    const [, ...named] =
      textsIn('sh')
        .join('')
        .match(/^npm install (\S+) express\s+# or (\S+) fastify$/m) ?? []
    expect(named).toHaveLength(2)
    expect(names).toEqual(expect.arrayContaining(named))
  })

  it('has no untested block', () => {
    const languages = ['sh', 'ts', 'ts', 'http', 'ts', 'ts']
    expect(blocks.map(({ language }) => language)).toEqual(languages)
  })

  it('is 150 lines at most, and its links lead somewhere', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(150)
    for (const [, path = ''] of readme.matchAll(/\]\(([^)#]+)\)/g))
      expect(readText(path)).not.toBe('')
  })
})

function textsIn(language: string): readonly string[] {
  return blocks.filter((block) => block.language === language).map(({ text }) => text)
}

/** The first example of Fastify, with the route that the README shows later. */
function withRoute(): string {
  const search = "const search = async () => 'found'\n"
  return fastify.replace('await app.listen', `${search}${fastifyRoute}await app.listen`)
}

function originOf(block: number): URL {
  const origin = origins[block]
  if (origin === undefined) throw new Error(`the README has no block ${block}`)
  return origin
}

function ask(block: number, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(new URL(path, originOf(block)), { headers })
}

async function rawAnswer({ hostname, port, pathname }: URL): Promise<readonly string[]> {
  const socket = connect(Number(port), hostname)
  socket.end(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  return Buffer.concat(await socket.toArray())
    .toString()
    .split('\r\n')
}

/** Instants differ from run to run, and a second may pass. Fastify writes the names of fields in lower case. */
function comparable(line: string): string {
  const [, name, value = ''] = /^([\w-]+): (.*)$/.exec(line) ?? []
  if (name === undefined) return line
  return `${name.toLowerCase()}: ${/-reset$/i.test(name) ? '<epoch>' : value.replace(/\b59$/, '60')}`
}
