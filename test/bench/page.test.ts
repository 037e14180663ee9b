import { describe, expect, it } from 'vitest'
import { filesUnder, readText } from '../support/workspace.ts'

const results = readText('test/bench/results.md')
const page = readText('docs/performance.md')

function rowsOf(text: string): readonly (readonly string[])[] {
  const lines = text.split('\n').filter((line) => line.startsWith('|'))
  return lines
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map((row) => row.slice(1, -1))
}

function section(text: string, heading: string): string {
  const [mark = ''] = heading.split(' ')
  const [, rest = ''] = text.split(`\n${heading}\n`)
  return rest.split(new RegExp(`\n#{1,${mark.length}} `))[0] ?? ''
}

/** What a subject has of a peer in a case, as the page rounds it. */
function ratios(suite: string, name: string, subject: string, peer: string): readonly string[] {
  const rows = rowsOf(section(section(results, `## ${suite}`), `### ${name}`))
  const column = rows.findIndex(([first]) => first?.startsWith('ours ÷'))
  const head = rows[column] ?? []
  const row = rows.slice(column).find(([first]) => first === subject) ?? []
  const cell = row[head.indexOf(`÷ ${peer}`)] ?? ''
  return cell.split(' · ').map(rounded)
}

function rounded(figure: string): string {
  const value = Number(figure)
  return value >= 9.95 ? String(Math.round(value)) : value.toPrecision(2)
}

/** Holds each row of a table of the page against the results, by its first cell. */
function holds(heading: string, found: (first: string, ...more: string[]) => readonly unknown[]) {
  it.each(rowsOf(section(page, `## ${heading}`)).slice(2))(
    `has the ratios of the results: ${heading}, %s`,
    (first = '', ...shown) => expect(shown).toEqual(found(first, ...shown)),
  )
}

describe('docs/performance.md', () => {
  const inFlight = rowsOf(section(page, '## Redis, by requests in flight')).slice(2)

  holds('Redis, by requests in flight', (count) =>
    ['sluice sliding-log', 'sluice fixed-window'].flatMap((subject) =>
      ratios('concurrency', `${count} in flight`, subject, 'rate-limit-redis'),
    ),
  )

  holds('HTTP', (kind) => {
    const [connections, traffic] = kind.split(', ')
    return ['Express', 'Fastify'].flatMap((framework) =>
      ['memory', 'redis'].map((store) => {
        const peer = framework === 'Express' ? 'express-rate-limit' : '@fastify/rate-limit'
        const name = `${traffic}, ${connections} connections, ${framework}, ${store}`
        return ratios('http', name, `sluice, ${framework}, ${store}`, `${peer}, ${store}`)[1]
      }),
    )
  })

  holds('Refused floods', (peer) =>
    ['one hot key', '10,000 keys'].map((kind) => {
      const name = peer.replace(/ with `(\w+)`/, ' ($1)')
      return ratios('concurrency', `refused flood, ${kind}`, 'sluice sliding-log', name)[0]
    }),
  )

  holds('Memory store', (peer, _hot, _many, heap) => {
    const of = (name: string) =>
      ratios('memory', name, 'sluice sliding-log, decide()', peer.replaceAll('`', ''))
    const [hot, many] = ['allowed, 10 hot keys', 'allowed, many keys'].map((name) => of(name)[1])
    return [hot, many, heap, ...of('many fresh keys, which expire')]
  })

  it.each(rowsOf(section(page, '## Hot keys with `prefetch`')).slice(2))(
    'has the ratios of the results for prefetch: %s a minute, %s processes',
    (limit, processes, share = '', cpu) => {
      const name = `${limit} a minute, ${processes} processes, 0.8 of the limit`
      const ours = 'Sluice with prefetch'
      expect(ratios('prefetch', name, ours, 'rate-limit-redis')).toEqual([cpu])
      const [head = [], , row = []] = rowsOf(
        section(section(results, '## prefetch'), `### ${name}`),
      )
      expect(row[0]).toBe(ours)
      const commands = Number(row[head.indexOf('Redis commands')]) * 100
      expect(Number.parseFloat(share)).toBeCloseTo(commands, commands < 0.1 ? 2 : 1)
    },
  )

  it('is 110 lines at most, and other pages repeat its figures', () => {
    expect(page.split('\n').length).toBeLessThanOrEqual(110)
    const found = (count: string) => inFlight.find(([first]) => first === count) ?? []
    for (const [count = '', ...shown] of rowsOf(
      section(readText('docs/index.md'), '## Measured'),
    ).slice(2)) {
      const [, checks, , cpu, windowChecks, , windowCpu] = found(count)
      expect(shown).toEqual([checks, cpu, windowChecks, windowCpu])
    }
    const claim =
      /does ([\d.]+) times .* with 64 requests in flight, but ([\d.]+) times as many with one/
    const [, many, one] = claim.exec(readText('README.md')) ?? []
    expect([many, one].map(Number)).toEqual([found('64')[1], found('1')[1]].map(Number))
  })
})

describe('a figure', () => {
  const pages = ['README.md', ...filesUnder('docs', '.md')].filter(
    (path) => !path.includes('/api/'),
  )
  const text = pages.map(readText).join('\n')

  it.each([
    ['bytes of a recorded request', /([\d,]+(?: to \d+)?) bytes (?:for each|a) recorded request/g],
    ['the deadline of a check', /`deadlineMs`(?: \(| \| | \| count, ms \| )(100|\d{2,3})\b/g],
    ['the wait for Redis', /waits longer than (\d+ m?s) for Redis/g],
    ['keys of a memory store', /([\d,]+) keys (?:by default|for all routes together)/g],
    ['failures that open the breaker', /after (\w+) failures/g],
    ['the prefix of an IPv6', /IPv6 \w+ are counted by (?:their )?(\/\d+)/g],
  ])('has the same value on all pages: %s', (_, figure) => {
    const found = [...text.matchAll(figure)].map(([, value]) => value)
    expect(found.length).toBeGreaterThan(1)
    expect(new Set(found).size, found.join(', ')).toBe(1)
  })
})
