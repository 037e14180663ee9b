import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { readText } from '../support/workspace.ts'
import { type Answer, type Ask, ExampleRunner } from './example-runner.ts'
import { anchors, codeIn, namesIn, page, sectionOf, sections } from './migrating-page.ts'
import { bench, majorOf, namesOf, peers } from './peers.ts'

/** In the column of ours, and no options: a method of stores, and what stands for a thing of the reader's own. */
const placeholders = ['apply', 'address', 'duration', 'search', 'fn', 'JSON']

let runner: ExampleRunner

beforeAll(async () => {
  runner = await ExampleRunner.create(bench)
})

afterAll(async () => {
  await runner.stop()
})

describe('docs/migrating.md', () => {
  it.each(peers)('names all that $name declares', (peer) => {
    const { rows } = sectionOf(peer.section)
    const told = new Set(rows.flatMap(({ theirs }) => theirs.flatMap(namesIn)))
    expect(namesOf(peer).filter((name) => !told.has(name))).toEqual([])
  })

  it('speaks of the versions that are installed', () => {
    const own = peers.filter(({ name, section }) => name === section)
    expect(sections.map(({ title }) => title)).toEqual(
      own.map((peer) => `${peer.name} ${majorOf(peer)}`),
    )
  })

  it('sends nobody to an option of ours that is not in the docs', () => {
    const pages = ['options', 'limits', 'routes', 'keys', 'observing', 'redis'] as const
    const code = pages.flatMap((page) => codeIn(readText(`docs/${page}.md`)))
    const documented = new Set(code.flatMap(namesIn))
    const named = sections.flatMap(({ rows }) => rows.flatMap(({ ours }) => ours.flatMap(namesIn)))
    const known = new Set([...documented, ...placeholders])
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })

  it('leads somewhere with each of its links', () => {
    for (const [, path = '', anchor] of page.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
      if (path !== '') expect(readText(`docs/${path}`)).not.toBe('')
      else expect(anchors()).toContain(anchor)
    }
  })
})

describe('the examples for Express', { timeout: 60_000 }, () => {
  const requests: readonly Ask[] = [
    ...many(5, { path: '/', headers: { 'x-api-key': 'a' } }),
    { path: '/', headers: { 'x-api-key': 'a' } },
    { path: '/', headers: { 'x-api-key': 'a', 'x-plan': 'paid' } },
    { path: '/', headers: { 'x-api-key': 'b' } },
    { path: '/health' },
    ...many(3, { path: '/login', method: 'POST' }),
    { path: '/' },
  ]

  it('answer alike before and after', async () => {
    const before = await runner.answers(sectionOf('express-rate-limit').before, requests)
    const after = await runner.answers(sectionOf('express-rate-limit').after, requests)
    expect(after.map(({ status }) => status)).toEqual([
      ...[200, 200, 200, 200, 200, 429, 200, 200, 200],
      ...[200, 200, 429, 200],
    ])
    expect(after.map(({ status }) => status)).toEqual(before.map(({ status }) => status))
    expect(after[5]?.body).toBe('{"error":"slow down"}')
    expect(after[5]?.body).toBe(before[5]?.body)
    for (const { headers } of [before[5], after[5]].filter((answer) => answer !== undefined)) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(50)
      expect(headers.get('ratelimit')).toMatch(/^"api"; ?r=0; ?t=\d\d$/)
      expect(headers.get('x-ratelimit-remaining')).toBe('0')
    }
    expect(after[8]?.headers.has('ratelimit')).toBe(false)
  })

  it.runIf(isProof)(
    'differ in that a denied login takes nothing from the other limit',
    async () => {
      const logins = many(4, { path: '/login', method: 'POST' })
      const before = await runner.answers(sectionOf('express-rate-limit').before, [
        ...logins,
        { path: '/' },
      ])
      const after = await runner.answers(sectionOf('express-rate-limit').after, [
        ...logins,
        { path: '/' },
      ])
      expect(before[4]?.headers.get('x-ratelimit-remaining')).toBe('0')
      expect(after[4]?.headers.get('x-ratelimit-remaining')).toBe('2')
    },
  )
})

describe.runIf(isProof)('the examples for Fastify', { timeout: 60_000 }, () => {
  it('answer alike before and after, with the same headers', async () => {
    const requests: readonly Ask[] = [
      ...many(6, { path: '/', headers: { 'x-api-key': 'a' } }),
      { path: '/' },
      ...many(3, { path: '/search' }),
      { path: '/health' },
    ]
    const before = await runner.answers(sectionOf('@fastify/rate-limit').before, requests)
    const after = await runner.answers(sectionOf('@fastify/rate-limit').after, requests)
    expect(after.map(({ status }) => status)).toEqual([
      ...[200, 200, 200, 200, 200, 429, 200],
      ...[200, 200, 429, 200],
    ])
    expect(after.map(told)).toEqual(before.map(told))
  })
})

describe.runIf(isProof)('the examples for Hono', { timeout: 60_000 }, () => {
  it('answer alike before and after, with the same headers', async () => {
    const requests: readonly Ask[] = [
      ...many(6, { path: '/', headers: { 'x-api-key': 'a' } }),
      { path: '/', headers: { 'x-api-key': 'a', 'x-plan': 'paid' } },
      { path: '/' },
      { path: '/health' },
      ...many(3, { path: '/login', method: 'POST' }),
    ]
    const before = await runner.answers(sectionOf('hono-rate-limiter').before, requests)
    const after = await runner.answers(sectionOf('hono-rate-limiter').after, requests)
    expect(after.map(({ status }) => status)).toEqual([
      ...[200, 200, 200, 200, 200, 429, 200, 200, 200],
      ...[200, 200, 429],
    ])
    const drafted = ({ status, headers }: Answer) => [
      status,
      ...['ratelimit-limit', 'ratelimit-remaining'].map((name) => headers.get(name)),
      headers.has('retry-after'),
    ]
    // Theirs counts denied requests, so that a paid client has fewer left.
    const alike = (answers: readonly Answer[]) => answers.filter((_, index) => index !== 6)
    expect(alike(after).map(drafted)).toEqual(alike(before).map(drafted))
    expect(after[5]?.body).toBe(before[5]?.body)
  })
})

describe.runIf(isProof)('the recipe for express-slow-down', { timeout: 60_000 }, () => {
  it('waits as the original', async () => {
    const [, ours = ''] = /^### express-slow-down$.*?^```ts$(.*?)^```$/ms.exec(page) ?? []
    const theirs = `
      import express from 'express'
      import { slowDown } from 'express-slow-down'
      const app = express()
      const delayMs = (used) => (used - 5) * 500
      app.use(slowDown({ windowMs: 900_000, delayAfter: 5, delayMs, maxDelayMs: 20_000 }))
      app.use((request, response) => {
        response.send('ok')
      })
      app.listen(process.env.PORT)`
    // The runner has asked once before, to see whether the example listens.
    const waits = async (example: string) =>
      (await runner.answers(example, many(6, { path: '/' }))).map(({ tookMs }) =>
        Math.floor(tookMs / 500),
      )
    expect(await waits(theirs)).toEqual([0, 0, 0, 0, 1, 2])
    expect(await waits(ours)).toEqual([0, 0, 0, 0, 1, 2])
  })
})

describe.runIf(isProof)('a block that is shorter than its window', { timeout: 60_000 }, () => {
  it('ends for rate-limiter-flexible as with thenReset', async () => {
    const theirs = `
      import { setTimeout as sleep } from 'node:timers/promises'
      import { RateLimiterMemory } from 'rate-limiter-flexible'
      const limiter = new RateLimiterMemory({ points: 2, duration: 60, blockDuration: 1 })
      const ask = () => limiter.consume('k').then(() => true, () => false)`
    const ours = `
      import { setTimeout as sleep } from 'node:timers/promises'
      import { createLimiter } from '@sluice/core'
      const penalty = { after: 1, within: '1m', for: '1s', factor: 1, thenReset: true }
      const limiter = createLimiter({ limit: 2, window: '1m', penalty })
      const ask = async () => (await limiter.consume('k')).allowed`
    const asks = `
      for (const waitMs of [0, 0, 0, 500, 600, 0, 0]) {
        await sleep(waitMs)
        console.log(await ask())
      }`
    const lines = ['true', 'true', 'false', 'false', 'true', 'true', 'false']
    expect(await runner.lines(theirs + asks, lines.length)).toEqual(lines)
    expect(await runner.lines(ours + asks, lines.length)).toEqual(lines)
  })
})

describe.runIf(isProof)('the examples without HTTP', { timeout: 60_000 }, () => {
  it('print the same before and after', async () => {
    const section = sectionOf('rate-limiter-flexible')
    // A second may pass before the third call.
    const lines = [
      'sent, 2 left',
      'sent, 0 left',
      expect.stringMatching(/^refused for (60|5\d) s$/),
    ]
    expect(await runner.lines(section.before, lines.length)).toEqual(lines)
    // On a busy machine Redis may be late, and something else decides.
    await until('ours prints the same', async () => {
      expect(await runner.lines(section.after, lines.length)).toEqual(lines)
      return true
    })
  })
})

describe.runIf(isProof)('the examples for Nest', { timeout: 60_000 }, () => {
  it('answer alike before and after', async () => {
    const requests: readonly Ask[] = [
      ...many(6, { path: '/', headers: { 'x-api-key': 'a' } }),
      { path: '/', headers: { 'x-api-key': 'b' } },
      { path: '/health' },
      ...many(3, { path: '/login', method: 'POST' }),
      { path: '/' },
    ]
    const before = await runner.answers(sectionOf('@nestjs/throttler').before, requests)
    const after = await runner.answers(sectionOf('@nestjs/throttler').after, requests)
    expect(after.map(({ status }) => status)).toEqual([
      ...[200, 200, 200, 200, 200, 429, 200, 200],
      ...[201, 201, 429, 200],
    ])
    const refused = ({ status, headers, body }: Answer) => [
      status,
      headers.has('retry-after'),
      body,
    ]
    expect(after.map(refused)).toEqual(before.map(refused))
  })

  it('differ in that theirs counts a limit of the module for each handler', async () => {
    const one = { path: '/', headers: { 'x-api-key': 'a' } }
    const requests = [...many(5, one), { ...one, path: '/other' }]
    const both = (example: string) =>
      example.replace(
        '  @Get()\n',
        `  @Get('other')\n  other() {\n    return 'ok'\n  }\n\n  @Get()\n`,
      )
    const { before, after } = sectionOf('@nestjs/throttler')
    expect((await runner.answers(both(before), requests))[5]?.status).toBe(200)
    expect((await runner.answers(both(after), requests))[5]?.status).toBe(429)
  })
})

function many(count: number, ask: Ask): readonly Ask[] {
  return Array.from({ length: count }, () => ask)
}

/** What a client reads that does not depend on when it is asked. */
function told({ status, headers, body }: Answer): unknown {
  const limits = ['x-ratelimit-limit', 'x-ratelimit-remaining'].map((name) => headers.get(name))
  return { status, limits, waits: headers.has('retry-after'), body: body.replace(/\d\d?}$/, '…}') }
}
