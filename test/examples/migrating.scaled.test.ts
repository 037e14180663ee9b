import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { readText } from '../support/workspace.ts'
import { type Answer, type Ask, ExampleRunner } from './example-runner.ts'
import { bench, majorOf, namesOf, peers } from './peers.ts'

const page = readText('docs/migrating.md')

/** What the page says of each peer. */
const sections = page
  .split(/^## From /m)
  .slice(1)
  .map((text) => ({
    // As it stands in the heading: `express-rate-limit 8`.
    title: text.slice(0, text.indexOf('\n')),
    before: example(text, 'Before'),
    after: example(text, 'After'),
    rows: rowsOf(text),
  }))

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

  it('names the installed versions', () => {
    const own = peers.filter(({ name, section }) => name === section)
    expect(sections.map(({ title }) => title)).toEqual(
      own.map((peer) => `${peer.name} ${majorOf(peer)}`),
    )
  })

  it('refers only to documented options', () => {
    const pages = ['options', 'limits', 'routes', 'keys', 'observing', 'redis'] as const
    const code = pages.flatMap((page) => codeIn(readText(`docs/${page}.md`)))
    const documented = new Set(code.flatMap(namesIn))
    const named = sections.flatMap(({ rows }) => rows.flatMap(({ ours }) => ours.flatMap(namesIn)))
    const known = new Set([...documented, ...placeholders])
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })
})

const ofA: Ask = { path: '/', headers: { 'x-api-key': 'a' } }
const ofB: Ask = { path: '/', headers: { 'x-api-key': 'b' } }
const paid: Ask = { path: '/', headers: { 'x-api-key': 'a', 'x-plan': 'paid' } }
const health: Ask = { path: '/health' }
const login: Ask = { path: '/login', method: 'POST' }
const denied = [...Array(5).fill(200), 429]

/** Requests to the examples of a peer, the statuses of the answers, and what else is the same before and after. */
interface Alike {
  readonly requests: readonly Ask[]
  readonly statuses: readonly number[]
  sees(answer: Answer): unknown
  /** A request that they answer in other ways, for a reason that the page tells. */
  readonly differs?: number
}

const fieldsOf = ({ headers }: Answer, ...names: readonly string[]) =>
  names.map((name) => headers.get(name))

const alike: Readonly<Record<string, Alike>> = {
  'express-rate-limit': {
    requests: [...many(6, ofA), paid, ofB, health, ...many(3, login), { path: '/' }],
    statuses: [...denied, 200, 200, 200, 200, 200, 429, 200],
    sees: ({ status }) => status,
  },
  '@fastify/rate-limit': {
    requests: [...many(6, ofA), { path: '/' }, ...many(3, { path: '/search' }), health],
    statuses: [...denied, 200, 200, 200, 429, 200],
    sees: (answer) => ({
      limits: fieldsOf(answer, 'x-ratelimit-limit', 'x-ratelimit-remaining'),
      waits: answer.headers.has('retry-after'),
      // What a client reads that does not depend on when it is asked.
      body: answer.body.replace(/\d\d?}$/, '…}'),
    }),
  },
  'hono-rate-limiter': {
    requests: [...many(6, ofA), paid, { path: '/' }, health, ...many(3, login)],
    statuses: [...denied, 200, 200, 200, 200, 200, 429],
    sees: (answer) => ({
      limits: fieldsOf(answer, 'ratelimit-limit', 'ratelimit-remaining'),
      waits: answer.headers.has('retry-after'),
    }),
    // Theirs counts denied requests, so that a paid client has fewer left.
    differs: 6,
  },
  '@nestjs/throttler': {
    requests: [...many(6, ofA), ofB, health, ...many(3, login), { path: '/' }],
    statuses: [...denied, 200, 200, 201, 201, 429, 200],
    sees: ({ headers, body }) => ({ waits: headers.has('retry-after'), body }),
  },
}

/** Asks both examples of a peer. @param change what is changed in both */
async function bothOf(peer: string, requests: readonly Ask[], change = (code: string) => code) {
  const { before, after } = sectionOf(peer)
  return [
    await runner.answers(change(before), requests),
    await runner.answers(change(after), requests),
  ] as const
}

const peersNow = Object.entries(alike).slice(0, isProof ? undefined : 1)

const slow = { timeout: 60_000 }

describe('the examples', slow, () => {
  it.each(peersNow)('answer alike before and after: %s', async (peer, asked) => {
    const [before, after] = await bothOf(peer, asked.requests)
    expect(after.map(({ status }) => status)).toEqual(asked.statuses)
    const seen = (answers: readonly Answer[]) =>
      answers.map((answer, index) => (index === asked.differs ? undefined : asked.sees(answer)))
    expect(seen(after)).toEqual(seen(before))
    expect(before.map(({ status }) => status)).toEqual(asked.statuses)
    // The first refusal.
    expect(after[5]?.body.replace(/\d\d?}$/, '…}')).toBe(before[5]?.body.replace(/\d\d?}$/, '…}'))
    if (peer !== 'express-rate-limit') return
    expect(after[5]?.body).toBe('{"error":"slow down"}')
    for (const { headers } of [before[5], after[5]].filter((answer) => answer !== undefined)) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(50)
      expect(headers.get('ratelimit')).toMatch(/^"api"; ?r=0; ?t=\d\d$/)
      expect(headers.get('x-ratelimit-remaining')).toBe('0')
    }
    expect(after[8]?.headers.has('ratelimit')).toBe(false)
  })

  it.runIf(isProof)(
    'of Express differ in that a denied login takes from no other limit',
    async () => {
      const answers = await bothOf('express-rate-limit', [...many(4, login), { path: '/' }])
      const left = answers.map((each) => each[4]?.headers.get('x-ratelimit-remaining'))
      expect(left).toEqual(['0', '2'])
    },
  )

  it.runIf(isProof)('of Nest differ in that theirs counts by handler', async () => {
    const other = `  @Get('other')\n  other() {\n    return 'ok'\n  }\n\n  @Get()\n`
    const withOther = (code: string) => code.replace('  @Get()\n', other)
    const requests = [...many(5, ofA), { ...ofA, path: '/other' }]
    const answers = await bothOf('@nestjs/throttler', requests, withOther)
    expect(answers.map((each) => each[5]?.status)).toEqual([200, 429])
  })
})

it.runIf(isProof)('the recipe for express-slow-down waits as the original', slow, async () => {
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

it.runIf(isProof)(
  'a block that is shorter than its window ends for rate-limiter-flexible as with thenReset',
  slow,
  async () => {
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
  },
)

it.runIf(isProof)('the examples without HTTP print the same before and after', slow, async () => {
  const section = sectionOf('rate-limiter-flexible')
  // A second may pass before the third call.
  const lines = ['sent, 2 left', 'sent, 0 left', expect.stringMatching(/^refused for (60|5\d) s$/)]
  expect(await runner.lines(section.before, lines.length)).toEqual(lines)
  // On a busy machine Redis may be late, and something else decides.
  await until('ours prints the same', async () => {
    expect(await runner.lines(section.after, lines.length)).toEqual(lines)
    return true
  })
})

function many(count: number, ask: Ask): readonly Ask[] {
  return Array.from({ length: count }, () => ask)
}

function sectionOf(peer: string) {
  const section = sections.find(({ title }) => title.startsWith(`${peer} `))
  if (!section) throw new Error(`docs/migrating.md has no section for ${peer}`)
  return section
}

/** What a piece of code names: options, functions and fields, but no texts, and nothing that it only reads of a value. */
function namesIn(code: string): readonly string[] {
  const bare = code.replace(/'[^']*'/g, '')
  return bare.match(/(?<![.\w])[A-Za-z][\w-]*/g) ?? []
}

function example(text: string, when: 'Before' | 'After'): string {
  return new RegExp(`^${when}:\\n\\n\`\`\`ts\\n(.*?)^\`\`\``, 'ms').exec(text)?.[1] ?? ''
}

function rowsOf(text: string) {
  const lines = text.split('\n').filter((line) => line.startsWith('| ') && !/^\| -+ \|/.test(line))
  return lines.map((line) => {
    const [, theirs = '', ours = ''] = line.split('|')
    return { theirs: codeIn(theirs), ours: codeIn(ours) }
  })
}

/** The code in a text, each piece as it stands between its marks, and each block. */
function codeIn(cell: string): readonly string[] {
  const marked = cell.matchAll(/```\w*\n([\s\S]*?)```|`([^`]+)`/g)
  return [...marked].map(([, block, code = '']) => block ?? code)
}
