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

describe('docs/performance.md', () => {
  const inFlight = rowsOf(section(page, '## Redis, by requests in flight')).slice(2)

  it.each(inFlight)('has the ratios of the results with %s in flight', (count, ...shown) => {
    const of = (subject: string) =>
      ratios('concurrency', `${count} in flight`, `sluice ${subject}`, 'rate-limit-redis')
    expect(shown).toEqual([...of('sliding-log'), ...of('fixed-window')])
  })

  it.each(rowsOf(section(page, '## HTTP')).slice(2))(
    'has the ratios of the results for servers: %s',
    (kind = '', ...shown) => {
      const [connections, traffic] = kind.split(', ')
      const found = ['Express', 'Fastify'].flatMap((framework) =>
        ['memory', 'redis'].map((store) => {
          const peer = framework === 'Express' ? 'express-rate-limit' : '@fastify/rate-limit'
          const name = `${traffic}, ${connections} connections, ${framework}, ${store}`
          return ratios('http', name, `sluice, ${framework}, ${store}`, `${peer}, ${store}`)[1]
        }),
      )
      expect(shown).toEqual(found)
    },
  )

  it.each(rowsOf(section(page, '## Refused floods')).slice(2))(
    'has the ratios of the results for floods: %s',
    (peer = '', ...shown) => {
      const name = peer.replace(/ with `(\w+)`/, ' ($1)')
      const of = (kind: string) =>
        ratios('concurrency', `refused flood, ${kind}`, 'sluice sliding-log', name)[0]
      expect(shown).toEqual([of('one hot key'), of('10,000 keys')])
    },
  )

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

  it.each(rowsOf(section(page, '## Memory store')).slice(2))(
    'has the ratios of the results for memory: %s',
    (peer = '', hot, many, _, pause) => {
      const of = (name: string) =>
        ratios('memory', name, 'sluice sliding-log, decide()', peer.replaceAll('`', ''))
      expect(of('allowed, 10 hot keys')[1]).toBe(hot)
      expect(of('allowed, many keys')[1]).toBe(many)
      expect(of('many fresh keys, which expire')).toEqual([pause])
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
  ])('stands on all pages with one value: %s', (_, figure) => {
    const found = [...text.matchAll(figure)].map(([, value]) => value)
    expect(found.length).toBeGreaterThan(1)
    expect(new Set(found).size, found.join(', ')).toBe(1)
  })
})
