import { join } from 'node:path'
import ts from '@typescript/typescript6'
import { describe, expect, it } from 'vitest'
import { GuardTable } from '../../packages/http/src/options/option-table.ts'
import { AppTable, optionsOf } from '../../packages/http/src/options/options.ts'
import { compile, type OptionEntry, optionEntries } from '../support/option-entries.ts'
import { readText, root } from '../support/workspace.ts'

/** Where an option may stand, as the page calls it, with the types that say so. */
const places = {
  policy: ['http#HttpPolicyOptions'],
  app: [
    'express#RateLimitOptions',
    'fastify#RateLimitPluginOptions',
    'fetch#RateLimitOptions',
    'hono#RateLimitOptions',
    'nest#RateLimitModuleOptions',
  ],
  route: ['http#RouteOverride'],
  limiter: ['core#LimiterOptions'],
}

/** The types whose options the other tables of the page list, by heading. */
const tables: Readonly<Record<string, readonly string[]>> = {
  Penalties: ['http#GuardPenalty'],
  Schedules: ['http#ScheduleOptions'],
  'Rules of a schedule': ['http#ScheduleRule'],
  'Adaptive limits': ['http#AdaptiveOptions'],
  'CPU signal': ['http#CpuOptions'],
  'Load shedding': ['http#ShedOptions'],
  Lists: ['http#AccessListOptions'],
  Addresses: ['http#IpOptions'],
  Credentials: ['http#ApiKeyOptions'],
  'Memory store': ['core#MemoryStoreOptions'],
  'Redis store': ['redis#RedisStoreOptions'],
  'Postgres store': ['postgres#PostgresStoreOptions'],
  'Regional store': ['core#RegionalStoreOptions'],
  Batches: ['redis#BatchOptions'],
  'Limiter calls': ['core#PeekOptions', 'core#RefundOptions'],
  Queues: ['queue#QueueOptions'],
  Brokers: [
    'queue#MemoryBrokerOptions',
    'queue#BullmqBrokerOptions',
    'queue#RabbitmqBrokerOptions',
  ],
  Admissions: ['queue#AdmissionOptions'],
  'Idempotency keys': ['queue#IdempotencyOptions'],
  'Status monitor': ['queue#StatusMonitorOptions'],
  Workers: ['queue#WorkerOptions'],
  Backoff: ['queue#BackoffTable'],
  Outbound: ['outbound#OutboundOptions'],
  'Outbound calls': ['outbound#CallOptions'],
  'Audit stream': ['outbound#AuditStreamOptions'],
  Clients: ['client#ClientOptions'],
  Metrics: ['metrics#MetricsOptions'],
  'Busiest keys': ['metrics#TopKeysOptions'],
  'Denial log': ['metrics#DenialLogOptions'],
  'Waiting for a job': ['client#WaitForOptions'],
}

/** Options that do not fit together, which the compiler has messages for. */
const mistakes = join(root, 'test/examples/mistakes.ts')
const types = [...Object.values(places), ...Object.values(tables)].flat()
const packages = [...new Set(types.map((type) => type.replace(/#.*/, '')))]
const program = compile(packages, {
  [mistakes]: `import { rateLimit } from '@sluice/express'
    rateLimit({ window: '1m' })
    rateLimit({ limit: 5, window: String(1) })`,
})
const entriesOf = optionEntries(program)

it('the message of the compiler asks for the limit that is missing, and leads from a text to durationMs', () => {
  const [missing, text] = program
    .getSemanticDiagnostics(program.getSourceFile(mistakes))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))

  expect(missing).toMatch(/Property 'limit' is missing/)
  expect(text).toMatch(
    /^Type 'string' is not assignable to type 'CalendarWindow \| Duration \| DurationMs/,
  )
})

it('docs/options.md matches the declarations of the options', async () => {
  const found: string[] = []
  const page = readText('docs/options.md').replace(
    /^(#{2,3}) (.*)\n((?:(?!#|\| option).*\n)*)(\| option(?:.*\n(?=\|))*.*\n)/gm,
    (_, level: string, heading: string, text: string) => {
      found.push(heading)
      return `${level} ${heading}\n${text}${tableOf(heading)}`
    },
  )
  expect(found.sort()).toEqual(['Policies', 'Limiters and guards', ...Object.keys(tables)].sort())
  await expect(page).toMatchFileSnapshot(join(root, 'docs/options.md'))
})

describe('the options of a guard', () => {
  const declarations = ['option-table', 'options']
    .map((name) => readText(`packages/http/src/options/${name}.ts`))
    .join('\n')
    .replace(/^interface KeyedPenalty[^}]*\}/m, '')

  it('are 52 at most, beside those of a policy file and of a framework', () => {
    expect(optionsOf('guard').length, 'agree on a new option first').toBeLessThanOrEqual(52)
  })

  it('are declared in one place each: the sentence, the type, the check and the default', () => {
    for (const name of Object.keys(new AppTable())) {
      const entries = declarations.match(new RegExp(`^  ${name}\\??:.*$`, 'gm')) ?? []
      expect(entries, name).toEqual([expect.stringMatching(/\?: Option</)])
    }
  })

  it('have the default of their docstring', () => {
    const told = entriesOf(['http#GuardTable'])
    const checked = Object.entries(new GuardTable()).flatMap(([name, check]) => {
      const byDefault = told.get(name)?.byDefault ?? ''
      const value: unknown = check(undefined, name)
      if (byDefault === '' || value === undefined) return []
      const inForce = JSON.stringify(value).replace(/"/g, "'").replace(/[,_ ]/g, '')
      expect([name, byDefault.replace(/[,_ ]/g, '')]).toEqual([name, inForce])
      return [name]
    })
    expect(checked.sort()).toEqual(
      [
        ...['exposeHeaders', 'headers', 'hideOnRedirect', 'maxWaiting', 'onMissingKey'],
        ...['retryJitter', 'statusCode'],
      ].sort(),
    )
  })
})

function tableOf(heading: string): string {
  const ofPolicies = ['http#HttpPolicyFields', 'core#PolicyFields']
  const ofGuards = ['http#PolicyGuardOptions', ...Object.values(places).flat()]
  const own = entriesOf(ofPolicies)
  const isPolicies = heading === 'Policies'
  if (!isPolicies && heading !== 'Limiters and guards') return table(rowsOf(tables[heading] ?? []))
  const rows = [...entriesOf(isPolicies ? ofPolicies : ofGuards).values()]
    .filter(({ name }) => isPolicies || !own.has(name))
    .map((entry) => `${rowOf(entry)} ${placesOf(entry.name)} |`)
  return table(rows, 'where')
}

function table(rows: readonly string[], ...more: readonly string[]): string {
  const columns = ['option', 'type', 'default', 'what it does', ...more]
  const rules = columns.map(() => '---')
  return [`| ${columns.join(' | ')} |`, `| ${rules.join(' | ')} |`, ...rows, ''].join('\n')
}

function rowsOf(of: readonly string[]): readonly string[] {
  return [...entriesOf(of).values()].map(rowOf)
}

function rowOf({ name, type, byDefault, isRequired, about }: OptionEntry): string {
  expect(about, name).toMatch(/^.{10,}[.)]$/)
  const cells = [linked(type), isRequired ? 'required' : literals(byDefault || 'none'), about]
  const texts = cells.map((cell) =>
    cell
      .replace(/(?<=\d)_(?=\d)/g, ',')
      .replace(/docs\/([\w-]+)\.md/g, '[$1]($1.md)')
      .replace(/\|/g, '\\|'),
  )
  return `| \`${name}\` | ${texts.join(' | ')} |`
}

/** Leads from a type that has a table to this table. */
function linked(type: string): string {
  return type.replace(/`(\w+)`/g, (text, name: string) => {
    const [heading] =
      Object.entries(tables).find(([, of]) => of.some((one) => one.endsWith(`#${name}`))) ?? []
    return heading === undefined ? text : `[object](#${anchor(heading)})`
  })
}

/** Marks what users would write. */
function literals(text: string): string {
  if (/^(?:true|false|[a-zA-Z]+\(\)|[{[].*)$/.test(text)) return `\`${text}\``
  return text.replace(/(?<!`[^`]*)'[^']*'/g, '`$&`')
}

function placesOf(option: string): string {
  const found = Object.entries(places).filter(([, of]) => entriesOf(of).has(option))
  return found.length === 4 ? 'all' : found.map(([place]) => place).join(', ')
}

function anchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
