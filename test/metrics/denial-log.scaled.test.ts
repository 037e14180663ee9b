import {
  type DenialLogOptions,
  type DenialRecord,
  type DenialSummary,
  denialLog,
} from '@sluice/metrics'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { scaled } from '../support/scale.ts'
import { fakeTime } from './scrape.ts'

fakeTime()

function logged(options: Partial<DenialLogOptions> = {}) {
  const records: (DenialRecord | DenialSummary)[] = []
  return { records, log: denialLog({ sink: (record) => void records.push(record), ...options }) }
}

/** How many denials records stand for. */
const stoodFor = (records: readonly object[]): number =>
  records.reduce((sum, each) => sum + Number(Reflect.get(each, 'factor') ?? 0), 0)

/** A guard that denies all requests but the first. */
function denying(options: Partial<DenialLogOptions> = {}) {
  const { records, log } = logged(options)
  const guard = guardOf({ name: 'api', limit: 1, window: '1m', observers: [log] })
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) await guard.check(exchange({ route: '/items/:id' }))
  }
  return { records, log, ask }
}

/** What the records of all denials in these tests have. */
const common = {
  time: '2026-11-20T17:30:00.000Z',
  ...{ route: 'GET /items/:id', method: 'GET', resetMs: 60_000, retryAfterMs: 60_000 },
  ...{ digest: expect.stringMatching(/^[\w-]{22}$/), traceId: undefined, factor: 1 },
}

describe('denialLog', () => {
  it('writes an object for each denial, with a digest in place of the identity', async () => {
    const { records, ask } = denying({ fields: () => ({ plan: 'free' }), traceId: () => 'abc' })
    await ask(2)
    expect(records).toEqual([
      {
        ...{ ...common, type: 'denial', policy: 'api', limit: 1, used: 1, answeredBy: 'memory' },
        ...{ traceId: 'abc', fields: { plan: 'free' } },
      },
    ])
    expect(JSON.stringify(records)).not.toContain('203.0.113.9')
  })

  it('writes what a policy in shadow would have denied, if asked to', async () => {
    const { records, log } = logged({ shadow: true, perSecond: 1 })
    const wanted = { name: 'next', limit: 1, window: '1m', mode: 'shadow' } as const
    const policies = [{ name: 'api', limit: 3, window: '1m' }, wanted] as const
    const guard = guardOf({ policies: [...policies], observers: [log] })
    for (let i = 0; i < 4; i += 1) await guard.check(exchange({ route: '/items/:id' }))
    log.flush()

    const shadow = { policy: 'next', limit: 1, used: 1, answeredBy: undefined }
    expect(records).toEqual([
      { ...common, ...shadow, type: 'shadow-denial' },
      { ...common, type: 'denial', policy: 'api', limit: 3, used: 3, answeredBy: 'memory' },
      {
        ...{ type: 'denial-summary', time: common.time, forMs: 0 },
        policies: [{ policy: 'next', shadow: true, denials: 1, records: 0, unrecorded: 1 }],
      },
    ])
    const [first, second] = records
    expect(first).toMatchObject({ digest: Reflect.get(second ?? {}, 'digest') })
  })

  it('ignores policies in shadow by default', async () => {
    const { records, log } = logged()
    const wanted = { name: 'next', limit: 1, window: '1m', mode: 'shadow' } as const
    const guard = guardOf({ ...wanted, observers: [log] })
    for (let i = 0; i < 3; i += 1) await guard.check(exchange())
    expect(log).not.toHaveProperty('onShadow')
    expect(records).toEqual([])
  })

  it('writes tens of records per second in any flood, representing all denials', async () => {
    const perSecond = 5
    const flood = scaled(20_000, 500_000)
    const { records, ask } = denying({ perSecond })
    await ask(1 + flood)
    expect(records.length).toBeLessThan(100)
    const unrecorded = flood - stoodFor(records)
    const before = records.length
    vi.advanceTimersByTime(60_000)
    const of = { denials: flood - perSecond, records: before - perSecond, unrecorded }
    const summary = { type: 'denial-summary', forMs: 60_000, policies: [{ policy: 'api', ...of }] }
    expect(records.at(-1)).toMatchObject(summary)
  })

  it('represents each denial once, within a second and across seconds', async () => {
    const { records, log, ask } = denying({ perSecond: 5 })
    await ask(1 + 105)
    expect(stoodFor(records)).toBe(105)
    await ask(7)
    expect(stoodFor(records)).toBe(105)
    vi.advanceTimersByTime(1_000)
    await ask(1)
    expect(records.at(-1)).toMatchObject({ factor: 8 })
    await ask(7)
    log.flush()
    expect(stoodFor(records)).toBe(117)
    const policies = [{ policy: 'api', denials: 115, unrecorded: 3 }]
    expect(records.at(-1)).toMatchObject({ policies })
  })

  it('restarts each second, and writes no summary if each denial had a record', async () => {
    const { records, log, ask } = denying({ perSecond: 2 })
    await ask(3)
    vi.advanceTimersByTime(1_000)
    await ask(2)
    vi.advanceTimersByTime(120_000)
    log.flush()
    expect(records.map(({ type }) => type)).toEqual(['denial', 'denial', 'denial', 'denial'])
  })

  it('summarises only the denials of its period', async () => {
    const { records, ask } = denying({ perSecond: 2 })
    await ask(1 + 2)
    vi.advanceTimersByTime(3_600_000)
    await ask(1 + 2 + 12)
    vi.advanceTimersByTime(60_000)
    expect(records.at(-1)).toMatchObject({
      type: 'denial-summary',
      time: '2026-11-20T18:31:00.000Z',
      forMs: 60_000,
      policies: [{ denials: 12, records: 1, unrecorded: 2 }],
    })
  })

  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic

  const throws = () => Promise.reject.call(undefined)
  const rejects = () => Promise.reject(new Error('gone'))

  it.each<[string, object, RegExp]>([
    ['fields are cyclic', { fields: () => cyclic }, /circular/i],
    ['fields are long', { fields: () => 'x'.repeat(1_000_000) }, /1000002 .* at most 4000/],
    ['fields throw', { fields: throws }, /./],
    ['fields reject', { fields: rejects }, /^fields contains a promise/],
    ['fields have a promise', { fields: () => ({ a: [rejects()] }) }, /^fields contains a prom/],
    ['fields resolve', { fields: async () => ({ plan: 'free' }) }, /^fields contains a promise/],
    ['fields are no JSON', { fields: () => 1n }, /BigInt/],
    ['traceId throws', { traceId: throws }, /./],
    ['traceId rejects', { traceId: rejects }, /./],
  ])('continues, and reports why, if %s', async (_, options, reason) => {
    const { records, ask } = denying(options)
    await ask(2)
    const fieldsError = expect.stringMatching(reason)
    expect(records).toMatchObject([{ traceId: undefined, fieldsError }])
  })

  it.each([
    ['throws', throws],
    ['rejects', rejects],
  ])('affects no request if the sink %s', async (_, sink) => {
    const guard = guardOf({ limit: 1, window: '1m', observers: [denialLog({ sink })] })
    await guard.check(exchange())
    expect((await guard.check(exchange())).verdict.action).toBe('reject')
  })

  it.each([
    [{}, /sink must be a function/],
    [{ sink: 'log' }, /sink must be a function/],
    [{ sink: vi.fn(), fields: {} }, /fields must be a function/],
    [{ sink: vi.fn(), perSecond: 0 }, /perSecond must be/],
    [{ sink: vi.fn(), shadow: 'yes' }, /shadow must be true or false/],
    [{ sink: vi.fn(), sample: 1 }, /sample/],
  ])('refuses %j', (options, message) => {
    expect(() => Reflect.apply(denialLog, undefined, [options])).toThrow(message)
  })
})
