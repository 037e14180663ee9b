import { policyFileProblems } from '@sluice/policies'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { note, replayed, times } from '../evidence/figures.ts'
import { compile, optionEntries } from '../support/option-entries.ts'
import { scaled } from '../support/scale.ts'
import { publishedSchema } from './published-schema.ts'

const schema = JSON.parse(JSON.stringify(publishedSchema(optionEntries(compile(['http'])))))
const valid = new Ajv2020({ strict: false, allErrors: true }).compile(schema)

const whole: object = parse(`
policies:
  - { name: burst, limit: 20, window: 1s, resolution: 10ms, key: { firstOf: [user, ip] } }
  - name: sustained
    algorithm: token-bucket
    limit: { tiers: { free: 600, pro: unlimited }, by: plan, default: 60 }
    window: 60000
    burst: 30
    enforce: { share: 0.5 }
    refundWhen: { by: failed }
  - { name: plan, limit: 1000000, algorithm: fixed-window, window: { every: month, zone: Europe/Rome } }
  - { name: far, limit: 100, window: 1m, async: { maxUncounted: 5 } }
  - { name: queue, algorithm: leaky-bucket, limit: 5, window: 1s, queue: 3, maxDelay: 2s }
profiles:
  night:
    limit:
      schedule:
        timeZone: Europe/Berlin
        default: 10
        rules: [{ days: [sat], from: '09:00', to: '24:00', limit: 5 }]
    window: 1m
    algorithm: fixed-window
    align: clock
routes:
  POST /login: { policies: [{ name: login, limit: 5, window: 15m, key: ip }], combine: add }
  /night: night
  /health: false
overrides:
  - policy: sustained
    key: { tenant: acme, id: 7 }
    limit: 20000
    mode: shadow
    until: 2026-12-31T23:59:59Z
    reason: load test
penalty: { after: 10, within: 1m, for: 5m, factor: 2, key: ip }
headers: [draft-11]
allow: { ips: [10.0.0.0/8], keys: ['@user/1'] }
statusCode: 429
retryJitter: 0.2
message: { text: slow down }
`)

type Path = readonly (string | number)[]

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const inner = Object.entries(value).flatMap(([field, each]) =>
    pathsOf(each, [...path, Array.isArray(value) ? Number(field) : field]),
  )
  return path.length === 0 ? inner : [path, ...inner]
}

const paths = pathsOf(whole)
const leaves = paths.filter((path) => typeof at(whole, path) !== 'object')

function at(root: unknown, path: Path): unknown {
  return path.reduce((value: unknown, step) => Reflect.get(Object(value), step), root)
}

function changed(path: Path, change: (holder: object, last: string | number) => void): unknown {
  const copy = structuredClone(whole)
  change(Object(at(copy, path.slice(0, -1))), path.at(-1) ?? '')
  return copy
}

const oddTexts = ['', 'x', '1s', '5', 'ip']
const oddValues = [
  ...[-1, 0, 1, 1.5, 2 ** 53, true, false, null, [], {}],
  ...[['ip'], { by: 'x' }, { share: 2 }],
]
const oddFields =
  'limit window burst algorithm mode name by default typo key until __proto__'.split(' ')

const open = { enumerable: true, configurable: true, writable: true }
const mutation = fc
  .tuple(
    fc.constantFrom(...paths),
    fc.constantFrom('set', 'delete', 'add'),
    fc.oneof(fc.constantFrom(...oddValues, ...oddTexts), fc.jsonValue({ maxDepth: 2 })),
    fc.constantFrom(...oddFields),
  )
  .map(([path, kind, value, field]) =>
    changed(path, (holder, last) => {
      if (kind === 'delete') Reflect.deleteProperty(holder, last)
      else if (kind === 'set') Reflect.set(holder, last, value)
      else Object.defineProperty(holder, field, { value, ...open })
    }),
  )

describe('the schema of policy files', () => {
  it('is shipped as in the code', async () => {
    const text = `${JSON.stringify(schema, null, 2)}\n`
    await expect(text).toMatchFileSnapshot('../../packages/policies/schema.json')
  })

  it('accepts the file of these tests, and its own examples', () => {
    expect(policyFileProblems(stringify(whole))).toEqual([])
    for (const example of schema.examples) expect(valid(example)).toBe(true)
  })

  it('accepts what ajv accepts with the shipped schema, and nothing else', {
    timeout: 120_000 * times,
  }, ({ task }) => {
    const inputs = Math.ceil(scaled(60, 400) * times)
    const check = (value: unknown, text: string) => {
      const problems = policyFileProblems(text).filter(({ kind }) => kind !== 'rule')
      expect([text, problems.length === 0]).toEqual([text, valid(value)])
    }
    const property = fc.property(mutation, fc.boolean(), (value, isJson) => {
      const text = isJson ? JSON.stringify(value) : stringify(value)
      check(parse(text), text)
    })
    fc.assert(property, { numRuns: inputs, ...replayed })
    note(task, { inputs })
  })

  it('points at the line of a mistake', () => {
    const wrong = fc.constantFrom<unknown>('@@wrong@@', -98_765, { wrong98765: true })
    const property = fc.property(fc.constantFrom(...leaves), wrong, (path, value) => {
      const file = changed(path, (holder, last) => void Reflect.set(holder, last, value))
      if (valid(file)) return
      const text = stringify(file)
      const lines = policyFileProblems(text).map(({ line }) => line)
      const line = text.split('\n').findIndex((each) => /@@wrong@@|98765/.test(each)) + 1
      const place = typeof value === 'object' ? [line, line - 1] : [line]
      expect([text, lines, place.some((each) => lines.includes(each))]).toEqual([text, lines, true])
    })
    fc.assert(property, { numRuns: scaled(60, 400) })
  })

  const policy = '{ name: a, limit: 5, window: 1s }'

  it.each<[string, ...(string | RegExp)[]]>([
    [
      'policies:\n  - { name: a, limit: 5, window: 15 minutes }',
      "2:34 policies[0].window must be milliseconds ≥ 1, or a string such as '500ms', '10s', '15m', '1h', '1d', but is '15 minutes'",
    ],
    [
      'policies:\n  - { name: a, max: 5, window: 1s }',
      "2:16 policies[0]: there is no option 'max' (did you mean 'limit'?)",
    ],
    ['policies:\n  - {name: a, limit: 9007199254740991, window: 1h}', /^2:\d+ .*(limit|policies)/],
    [
      `policies: [${policy}]\noverrides:\n  - { policy: b, key: { ip: 1.2.3.4 }, limit: 1 }\n  - { policy: a, key: { ip: 1.2.3.4 }, limit: 1, until: 2026-12-31T23:59:59 }`,
      /^4:57 overrides\[1\].until must be a time with its zone/,
    ],
    [`policies: [${policy}, ${policy}]`, /^1:55 .*has the same name as policies\[0\]/],
    [
      'policies:\n  - { name: a, limit: -5, window: 15 minutes, burst: 3, mod: shadow }\n  - { limt: 5 }',
      /^2:\d+ policies\[0\].limit must be/,
      /^2:\d+ policies\[0\].window must be/,
      /^2:\d+ policies\[0\]: there is no option 'burst'/,
      /^2:\d+ policies\[0\]: there is no option 'mod'/,
      /^3:\d+ policies\[1\] needs name/,
      /^3:\d+ policies\[1\] needs window/,
      /^3:\d+ policies\[1\]: there is no option 'limt' \(did you mean/,
    ],
    ['policies: [', /^1:\d+ /],
    ['', /./],
  ])('explains the mistake, the legal values and the fix: %j', (text, ...expected) => {
    const problems = policyFileProblems(text)
    expect(problems.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual(
      expected.map((what) => (typeof what === 'string' ? what : expect.stringMatching(what))),
    )
  })

  it.each([
    'overrides: sk_live',
    'overrides: { sk_live: 9 }',
    'overrides: [sk_live]',
    'overrides: [{ policy: a, key: sk_live, limit: 9 }]',
    'overrides: [{ policy: a, key: { ip: { sk_live: 1 } }, limit: 9 }]',
    'overrides: [{ policy: a, key: { ip: 1.2.3.4 }, limit: 9, sk_live: 1 }]',
    'overrides: [*sk_live]',
    'overrides: [!sk_live x]',
    'overrides: [{ policy: a, key: { sk_live: x, sk_live: x }, limit: 9 }]',
    'block: { ips: [sk_live] }',
    'block: { sk_live: [x] }',
    'allow: { keys: sk_live }',
    'routes: { /: { policies: [a], block: { ips: [sk_live] } } }',
  ])('shows no text from places with identities: %s', (text) => {
    const problems = policyFileProblems(`policies: [{ name: a, limit: 5, window: 1s }]\n${text}`)
    expect(problems).not.toEqual([])
    expect(problems.map(({ message }) => message).join()).not.toContain('sk_live')
  })

  const many = (count: number, line: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => line(index)).join('\n')
  const one = 'policies: [{ name: a, limit: 5, window: 1s }]'

  it.each([
    ['unknown fields', `${one}\n${many(24_000, (i) => `k${i}: 1`)}`],
    [
      'unknown fields of a policy',
      `policies:\n- name: a\n  limit: 5\n  window: 1s\n${many(16_000, (i) => `  k${i}: 1`)}`,
    ],
    ['overrides of no policy', `${one}\noverrides:\n${many(8_000, () => ' - { policy: b }')}`],
    ['tiers', `policies:\n- name: a\n  limit: {tiers: {${many(15_000, (i) => `t${i}: x,`)}}}`],
    ['names twice', `profiles:\n${many(20_000, () => ' p: 1')}`],
    ['routes', `${one}\nroutes:\n${many(14_000, (i) => ` /r${i}: false`)}`],
    ['maps in maps', `${one}\nmessage: ${'{a: '.repeat(50_000)}`],
    ['fields of a message', `${one}\nmessage: {${many(17_000, (i) => `m${i}: 1,`)}}`],
  ])('stops at 100 faults, after a time that grows with the length alone: %s', (_, text) => {
    const before = process.cpuUsage()
    expect(policyFileProblems(text).length).toBeLessThanOrEqual(100)
    expect(process.cpuUsage(before).user).toBeLessThan(3_000_000)
  })

  it('rejects aliases that expand too much', () => {
    const bomb = `a0: &a0 [${'x,'.repeat(20)}x]\n${Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(', ')}]`).join('\n')}`
    expect(policyFileProblems(bomb)[0]?.message).toMatch(/alias/i)
  })
})
